// Undoes a trace event by event from its end; see the header.
#include "tools/import/snapshot_history.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace k3sim {
namespace {

struct Used {
  std::int64_t size = 0;
  std::int64_t requested = 0;
  BlockState state = BlockState::kAllocated;
  bool exact = false;  // size known from the final segments
};

class History {
 public:
  History(const MemorySnapshot& snapshot, const AllocatorPolicy& policy) : policy_(policy) {
    for (const MemorySegment& s : snapshot.segments) {
      MemorySegment held = s;
      held.blocks.clear();
      held.expandable = policy.expandable_segments;
      segments_.emplace(s.address, held);
      std::int64_t address = s.address;
      for (const SegmentBlock& b : s.blocks) {
        if (b.state != BlockState::kInactive) used_.emplace(address, Used{b.size, b.requested, b.state, true});
        address += b.size;
      }
    }
  }

  // False when the event cannot have led to the state after it.
  bool undo(const SnapshotEvent& e) {
    switch (e.action) {
      case SnapshotAction::kAlloc:
        return used_.erase(e.address) == 1;
      case SnapshotAction::kFreeCompleted:
        return used_.emplace(e.address, Used{round_request(policy_, e.size), e.size, BlockState::kAwaitingFree, false})
            .second;
      case SnapshotAction::kFreeRequested: {
        const auto it = used_.find(e.address);
        if (it == used_.end()) return false;
        it->second.state = BlockState::kAllocated;
        return true;
      }
      case SnapshotAction::kSegmentAlloc:
        return segments_.erase(e.address) == 1;
      case SnapshotAction::kSegmentMap:
        return remove_mapped(e);
      case SnapshotAction::kSegmentFree:
      case SnapshotAction::kSegmentUnmap:
        add(e);
        return true;
      default:
        return true;
    }
  }

  std::vector<MemorySegment> segments() {
    std::vector<MemorySegment> result;
    for (const auto& [address, held] : segments_) {
      result.push_back(held);
      if (!fill_blocks(result.back())) return {};
    }
    return result;
  }

 private:
  bool remove_mapped(const SnapshotEvent& e) {
    auto it = segments_.upper_bound(e.address);
    if (it == segments_.begin()) return false;
    --it;
    const MemorySegment held = it->second;
    const std::int64_t end = held.address + held.total_size;
    if (e.address + e.size > end) return false;
    segments_.erase(it);
    keep(held, held.address, e.address);
    keep(held, e.address + e.size, end);
    return true;
  }
  void keep(MemorySegment held, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    held.address = begin;
    held.total_size = end - begin;
    segments_.emplace(begin, held);
  }
  void add(const SnapshotEvent& e) {
    MemorySegment held;
    held.address = e.address;
    held.total_size = e.size;
    held.stream = e.stream;
    held.expandable = e.action == SnapshotAction::kSegmentUnmap;
    held.small = held.expandable ? nearest_is_small(e) : e.size == policy_.constants->small_segment;
    if (held.expandable) {  // contiguous mapped stretches are one segment
      auto after = segments_.lower_bound(e.address);
      if (after != segments_.end() && after->first == e.address + e.size) {
        held.total_size += after->second.total_size;
        after = segments_.erase(after);
      }
      if (after != segments_.begin() && std::prev(after)->first + std::prev(after)->second.total_size == held.address) {
        std::prev(after)->second.total_size += held.total_size;
        return;
      }
    }
    segments_.emplace(held.address, held);
  }
  bool nearest_is_small(const SnapshotEvent& e) const {
    const MemorySegment* best = nullptr;
    std::int64_t distance = 0;
    for (const auto& [address, s] : segments_) {
      const std::int64_t d = std::abs(address - e.address);
      if (s.stream != e.stream || (best != nullptr && d >= distance)) continue;
      best = &s;
      distance = d;
    }
    return best != nullptr ? best->small : e.size % policy_.constants->large_segment != 0;
  }

  // Gaps between used blocks are free blocks. False when a used block does not fit its segment.
  bool fill_blocks(MemorySegment& s) const {
    const std::int64_t end = s.address + s.total_size;
    const bool fine = s.small || s.expandable;
    const std::int64_t unsplit = fine ? policy_.constants->min_block - 1 : policy_.constants->small_limit;
    std::int64_t at = s.address;
    for (auto it = used_.lower_bound(s.address); it != used_.end() && it->first < end; ++it) {
      if (it->first < at) return false;
      if (it->first > at) s.blocks.push_back({it->first - at, 0, BlockState::kInactive});
      const auto following = std::next(it);
      const std::int64_t limit = following != used_.end() ? std::min(end, following->first) : end;
      std::int64_t size = it->second.size;
      const std::int64_t gap = limit - it->first - size;
      if (gap < 0) return false;
      if (!it->second.exact && gap <= unsplit) size += gap;
      s.blocks.push_back({size, it->second.requested, it->second.state});
      at = it->first + size;
    }
    if (at < end) s.blocks.push_back({end - at, 0, BlockState::kInactive});
    return at <= end;
  }

  const AllocatorPolicy& policy_;
  std::map<std::int64_t, MemorySegment> segments_;
  std::map<std::int64_t, Used> used_;
};

// Every free in the trace has its alloc, and the trace accounts for every byte of the final segments.
bool starts_empty(const MemorySnapshot& snapshot) {
  std::set<std::int64_t> live;
  std::int64_t reserved = 0;
  for (const SnapshotEvent& e : snapshot.trace) {
    switch (e.action) {
      case SnapshotAction::kAlloc:
        live.insert(e.address);
        break;
      case SnapshotAction::kFreeRequested:
        if (live.find(e.address) == live.end()) return false;
        break;
      case SnapshotAction::kFreeCompleted:
        if (live.erase(e.address) == 0) return false;
        break;
      case SnapshotAction::kSegmentAlloc:
      case SnapshotAction::kSegmentMap:
        reserved += e.size;
        break;
      case SnapshotAction::kSegmentFree:
      case SnapshotAction::kSegmentUnmap:
        reserved -= e.size;
        break;
      default:
        break;
    }
  }
  for (const MemorySegment& s : snapshot.segments) reserved -= s.total_size;
  return reserved == 0;
}

}  // namespace

std::vector<MemorySegment> segments_before_trace(const MemorySnapshot& snapshot, const AllocatorPolicy& policy) {
  if (starts_empty(snapshot)) return {};
  History history(snapshot, policy);
  for (std::size_t i = snapshot.trace.size(); i-- > 0;)
    if (!history.undo(snapshot.trace[i])) return {};
  return history.segments();
}

}  // namespace k3sim
