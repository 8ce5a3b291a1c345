// Step-by-step comparison of a recorded trace with the emulation; see the header.
#include "tools/import/snapshot_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "sim/mem/caching_allocator.h"
#include "tools/import/snapshot_history.h"

namespace k3sim {
namespace {

std::string describe(const SnapshotEvent& e) {
  return fmt::format("{} address {} size {} stream {}", to_string(e.action), e.address, e.size, e.stream);
}

bool is_silent(SnapshotAction a) {
  return a == SnapshotAction::kOther || a == SnapshotAction::kOutOfMemory;
}

SnapshotAction action_of(SegmentEventKind kind) {
  switch (kind) {
    case SegmentEventKind::kAlloc:
      return SnapshotAction::kSegmentAlloc;
    case SegmentEventKind::kFree:
      return SnapshotAction::kSegmentFree;
    case SegmentEventKind::kMap:
      return SnapshotAction::kSegmentMap;
    case SegmentEventKind::kUnmap:
      return SnapshotAction::kSegmentUnmap;
  }
  return SnapshotAction::kOther;
}

std::string describe(const MemorySegment& s, std::size_t blocks_from) {
  std::string text = fmt::format("{} segment at {} size {} stream {}, {} blocks", s.small ? "small" : "large",
                                 s.address, s.total_size, s.stream, s.blocks.size());
  if (blocks_from < s.blocks.size()) {
    const SegmentBlock& b = s.blocks[blocks_from];
    const char* state = b.state == BlockState::kInactive    ? "inactive"
                        : b.state == BlockState::kAllocated ? "active_allocated"
                                                            : "active_awaiting_free";
    text += fmt::format(", block {} of size {} {}", blocks_from, b.size, state);
  }
  return text;
}

class Replay {
 public:
  Replay(const MemorySnapshot& snapshot, const AllocatorPolicy& policy, bool addresses,
         std::vector<MemorySegment> initial)
      : snapshot_(snapshot), policy_(policy), allocator_(policy, {}), addresses_(addresses) {
    report_.initial_segments = initial.size();
    adopt(std::move(initial));
  }

  ReplayReport run() {
    const std::vector<SnapshotEvent>& trace = snapshot_.trace;
    for (position_ = 0; position_ < trace.size(); ++position_) {
      allocator_.at_request(position_);
      step(trace[position_]);
    }
    skip_silent();
    if (cursor_ < trace.size()) differ(cursor_, describe(trace[cursor_]), "end of the emulation");
    compare_segments();
    report_.emulated_peak_allocated = Bytes(allocator_.counters().allocated.peak);
    report_.emulated_peak_reserved = Bytes(allocator_.counters().reserved.peak);
    report_.segment_events = allocator_.segment_events().size();
    report_.private_pool_segments = snapshot_.private_pool_segments;
    measured_peaks();
    return std::move(report_);
  }

 private:
  struct Live {
    BlockId block;
    MemoryId owner;
    SnapshotEvent alloc;  // as the emulation placed it
  };

  void adopt(std::vector<MemorySegment> initial) {
    if (initial.empty()) return;
    const std::vector<BlockId> used = allocator_.adopt(std::move(initial), 0);
    for (const BlockId block : used) {
      const Block& b = allocator_.heap()[block];
      const SnapshotEvent alloc{SnapshotAction::kAlloc, b.address, b.requested,
                                allocator_.heap().arena(b.arena).stream};
      live_.insert_or_assign(b.address, Live{block, next_owner_++, alloc});
      owner_address_.push_back(b.address);
    }
    initial_allocated_ = allocator_.counters().allocated.current;
    initial_reserved_ = allocator_.counters().reserved.current;
  }

  void step(const SnapshotEvent& e) {
    switch (e.action) {
      case SnapshotAction::kAlloc:
        return allocate(e);
      case SnapshotAction::kFreeRequested:
        return free_requested(e);
      case SnapshotAction::kFreeCompleted:
        return free_completed(e);
      case SnapshotAction::kSegmentAlloc:
      case SnapshotAction::kSegmentMap:
        if (hint_ < 0) hint_ = e.address;
        return;
      case SnapshotAction::kSegmentFree:
      case SnapshotAction::kSegmentUnmap:
        if (!released_) allocator_.empty_cache();
        released_ = true;
        return emit_internal();
      default:
        return;
    }
  }

  void allocate(const SnapshotEvent& e) {
    ++report_.requests;
    allocator_.expect_address(addresses_ && !report_.first_difference ? hint_ : -1);
    hint_ = -1;
    released_ = false;
    const BlockId block = allocator_.allocate(next_owner_, e.size, e.stream);
    emit_internal();
    if (block == kNoBlock) return differ(position_, describe(e), "out of memory");
    const SnapshotEvent placed{SnapshotAction::kAlloc, allocator_.heap()[block].address, e.size, e.stream};
    emit(placed);
    live_.insert_or_assign(e.address, Live{block, next_owner_++, placed});
    owner_address_.push_back(e.address);
  }

  void free_requested(const SnapshotEvent& e) {
    ++report_.requests;
    hint_ = -1;
    released_ = false;
    const auto it = live_.find(e.address);
    if (it == live_.end() || !allocator_.heap()[it->second.block].allocated)
      return differ(position_, describe(e), "no allocated block at this address");
    const bool immediate = position_ + 1 < snapshot_.trace.size() &&
                           snapshot_.trace[position_ + 1].action == SnapshotAction::kFreeCompleted &&
                           snapshot_.trace[position_ + 1].address == e.address;
    SnapshotEvent freed = it->second.alloc;
    freed.action = SnapshotAction::kFreeRequested;
    emit(freed);
    if (!immediate) allocator_.use_on_stream(it->second.block, kForeignStream);
    allocator_.free(it->second.block);
    if (!immediate) return;
    freed.action = SnapshotAction::kFreeCompleted;
    emit(freed);
    live_.erase(it);
    ++position_;
  }

  // A free that waited for other streams: the trace says when the wait was over.
  void free_completed(const SnapshotEvent& e) {
    const auto it = live_.find(e.address);
    if (it == live_.end()) return differ(position_, describe(e), "no block waits for its free at this address");
    allocator_.complete_free(it->second.owner);
    emit_internal();
  }

  // What the allocator did on its own: completed frees, then segments taken or given back.
  void emit_internal() {
    for (const MemoryId owner : allocator_.take_completed()) {
      const auto it = live_.find(owner_address_[owner]);
      if (it == live_.end() || it->second.owner != owner) continue;
      SnapshotEvent done = it->second.alloc;
      done.action = SnapshotAction::kFreeCompleted;
      live_.erase(it);
      emit(done);
    }
    const std::vector<SegmentEvent>& events = allocator_.segment_events();
    for (; emitted_ < events.size(); ++emitted_)
      emit(
          {action_of(events[emitted_].kind), events[emitted_].address, events[emitted_].size, events[emitted_].stream});
  }

  void skip_silent() {
    while (cursor_ < snapshot_.trace.size() && is_silent(snapshot_.trace[cursor_].action)) ++cursor_;
  }

  void emit(const SnapshotEvent& got) {
    skip_silent();
    if (cursor_ >= snapshot_.trace.size()) return differ(cursor_, "end of the trace", describe(got));
    const SnapshotEvent& expected = snapshot_.trace[cursor_];
    const bool same = expected.action == got.action && expected.address == got.address && expected.size == got.size &&
                      expected.stream == got.stream;
    if (!same) differ(cursor_, describe(expected), describe(got));
    ++cursor_;
  }

  void differ(std::size_t event, std::string expected, std::string got) {
    if (!report_.first_difference) report_.first_difference = {event, std::move(expected), std::move(got)};
  }

  void compare_segments() {
    const std::vector<MemorySegment> got = list_segments(allocator_.heap());
    const std::vector<MemorySegment>& expected = snapshot_.segments;
    const std::size_t at = snapshot_.trace.size();
    for (std::size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
      if (i >= got.size()) return differ(at, describe(expected[i], 0), "no such segment");
      if (i >= expected.size()) return differ(at, "no such segment", describe(got[i], 0));
      const std::size_t block = first_different_block(expected[i], got[i]);
      const bool same_head = expected[i].address == got[i].address && expected[i].total_size == got[i].total_size &&
                             expected[i].stream == got[i].stream && expected[i].small == got[i].small;
      if (!same_head || block < std::max(expected[i].blocks.size(), got[i].blocks.size()))
        return differ(at, describe(expected[i], block), describe(got[i], block));
    }
  }

  // Requested sizes are not compared here: the trace's events carry them.
  static std::size_t first_different_block(const MemorySegment& a, const MemorySegment& b) {
    const std::size_t n = std::min(a.blocks.size(), b.blocks.size());
    std::size_t i = 0;
    while (i < n && a.blocks[i].size == b.blocks[i].size && a.blocks[i].state == b.blocks[i].state) ++i;
    return i;
  }

  // Without process statistics in the file: running sums over the trace. A trace has no block sizes; when every event
  // and every final block agreed the emulated sizes are the measured ones, otherwise the policy's rounding stands in.
  void measured_peaks() {
    MemoryCounter allocated{initial_allocated_, initial_allocated_, 0};
    MemoryCounter reserved{initial_reserved_, initial_reserved_, 0};
    for (const SnapshotEvent& e : snapshot_.trace) {
      if (e.action == SnapshotAction::kAlloc) allocated.add(round_request(policy_, e.size), 0);
      if (e.action == SnapshotAction::kFreeRequested) allocated.add(-round_request(policy_, e.size), 0);
      if (e.action == SnapshotAction::kSegmentAlloc || e.action == SnapshotAction::kSegmentMap) reserved.add(e.size, 0);
      if (e.action == SnapshotAction::kSegmentFree || e.action == SnapshotAction::kSegmentUnmap)
        reserved.add(-e.size, 0);
    }
    report_.measured_from_statistics = snapshot_.peak_allocated && snapshot_.peak_reserved;
    const Bytes peak = report_.first_difference ? Bytes(allocated.peak) : report_.emulated_peak_allocated;
    report_.measured_peak_allocated = snapshot_.peak_allocated.value_or(peak);
    report_.measured_peak_reserved = snapshot_.peak_reserved.value_or(Bytes(reserved.peak));
  }

  const MemorySnapshot& snapshot_;
  AllocatorPolicy policy_;
  CachingAllocator allocator_;
  bool addresses_;
  ReplayReport report_;
  std::unordered_map<std::int64_t, Live> live_;  // by the address in the trace
  std::vector<std::int64_t> owner_address_;
  MemoryId next_owner_ = 0;
  std::size_t position_ = 0;
  std::size_t cursor_ = 0;   // next trace event to be matched
  std::size_t emitted_ = 0;  // segment events already matched
  std::int64_t hint_ = -1;
  bool released_ = false;
  std::int64_t initial_allocated_ = 0;
  std::int64_t initial_reserved_ = 0;
};

}  // namespace

ReplayReport replay_snapshot(const MemorySnapshot& snapshot, const ReplayOptions& options) {
  const AllocatorPolicy recorded = parse_alloc_conf(snapshot.alloc_conf);
  const AllocatorPolicy policy = options.alloc_conf ? parse_alloc_conf(*options.alloc_conf) : recorded;
  const bool addresses = options.measured_addresses && policy.expandable_segments == recorded.expandable_segments;
  std::vector<MemorySegment> initial = segments_before_trace(snapshot, recorded);
  for (MemorySegment& s : initial) s.expandable = policy.expandable_segments;
  const ReplayReport late = Replay(snapshot, policy, addresses, initial).run();
  if (initial.empty() || !late.first_difference) return late;
  // The guessed beginning does not explain the trace. An empty beginning may explain more of it (a damaged trace).
  const ReplayReport empty = Replay(snapshot, policy, addresses, {}).run();
  const bool further = !empty.first_difference || empty.first_difference->event > late.first_difference->event;
  return further ? empty : late;
}

ReplayReport replay_snapshot(const std::string& path, const ReplayOptions& options) {
  return replay_snapshot(load_memory_snapshot(path, options.device), options);
}

std::string to_json(const ReplayReport& report) {
  nlohmann::ordered_json j;
  j["requests"] = report.requests;
  j["measured"] = {{"peak_allocated", report.measured_peak_allocated.count()},
                   {"peak_reserved", report.measured_peak_reserved.count()},
                   {"source", report.measured_from_statistics ? "statistics" : "trace"}};
  j["emulated"] = {{"peak_allocated", report.emulated_peak_allocated.count()},
                   {"peak_reserved", report.emulated_peak_reserved.count()}};
  j["segment_events"] = report.segment_events;
  j["initial_segments"] = report.initial_segments;
  j["private_pool_segments"] = report.private_pool_segments;
  j["first_difference"] = nullptr;
  if (const auto& d = report.first_difference)
    j["first_difference"] = {{"event", d->event}, {"expected", d->expected}, {"got", d->got}};
  return j.dump(2);
}

}  // namespace k3sim
