// The default policy, deferred frees and the ladder of retries; see the header. Expandable ranges are in
// expandable_segments.cpp.
#include "sim/mem/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/mem/expandable_segments.h"

namespace k3sim {
namespace {
// Addresses of our own choice start far above what drivers return, so they never collide with measured ones.
constexpr std::int64_t kFirstAddress = std::int64_t{1} << 52;
}  // namespace

CachingAllocator::CachingAllocator(const AllocatorPolicy& policy, const DeviceMemory& device)
    : policy_(policy), device_(device), next_address_(kFirstAddress) {
  if (policy_.memory_fraction > 0.0)
    fraction_limit_ = static_cast<std::int64_t>(policy_.memory_fraction * device_.total.as_double());
}

BlockId CachingAllocator::allocate(MemoryId owner, std::int64_t bytes, MemoryStream stream) {
  CS_CHECK(bytes > 0, "allocation of {} bytes", bytes);
  if (!pending_.empty()) process_events();
  const std::int64_t size = round_request(policy_, bytes);
  const bool small = size <= policy_.constants->small_limit;
  const Wanted wanted{size, segment_size(policy_, size), heap_.arena_index(small, stream)};
  BlockId block = find_free(wanted);
  if (block == kNoBlock) block = grow(wanted);
  expected_address_ = -1;
  if (block == kNoBlock) return kNoBlock;
  block = hand_out(block, size);
  Block& b = heap_[block];
  b.allocated = true;
  b.requested = bytes;
  b.owner = owner;
  counters_.allocated.add(b.size, request_);
  counters_.active.add(b.size, request_);
  counters_.requested.add(bytes, request_);
  return block;
}

BlockId CachingAllocator::find_free(const Wanted& wanted) {
  Arena& arena = heap_.arena(wanted.arena);
  if (tracks_age()) ++heap_.searches(arena.small);
  FreeList::Cursor c = arena.free.lower_bound(wanted.size);
  if (arena.free.at_end(c)) return kNoBlock;
  if (policy_.expandable_segments) c = ExpandableSegments::best_fit(heap_, arena.free, c);
  const FreeList::Entry found = arena.free.at(c);
  const std::int64_t limit = policy_.max_split_size.count();
  if (wanted.size < limit && found.size >= limit) return kNoBlock;
  if (wanted.size >= limit && found.size >= wanted.size + policy_.max_non_split_rounding.count()) return kNoBlock;
  arena.free.erase(found.size, found.address);
  return found.block;
}

BlockId CachingAllocator::grow(const Wanted& wanted) {
  if (tracks_age()) collect_garbage();
  BlockId block = new_segment(wanted);
  if (block == kNoBlock && release_oversize(wanted)) block = new_segment(wanted);
  if (block != kNoBlock) return block;
  release_cached();
  ++counters_.retries;
  return new_segment(wanted);
}

BlockId CachingAllocator::new_segment(const Wanted& wanted) {
  if (fraction_limit_ > 0 && counters_.reserved.current + wanted.segment > fraction_limit_) return kNoBlock;
  if (policy_.expandable_segments) return ExpandableSegments(*this).allocate(wanted.arena, wanted.size);
  if (wanted.segment > device_.available.count() - counters_.reserved.current) return kNoBlock;
  Block segment;
  segment.size = wanted.segment;
  segment.address = new_address(wanted.segment);
  segment.arena = wanted.arena;
  const BlockId block = heap_.create(segment);
  counters_.reserved.add(wanted.segment, request_);
  record(SegmentEventKind::kAlloc, segment, segment.address, segment.size);
  return block;
}

std::int64_t CachingAllocator::new_address(std::int64_t size) {
  if (expected_address_ >= 0) return std::exchange(expected_address_, -1);
  const std::int64_t align = policy_.constants->large_rounding;
  return std::exchange(next_address_, next_address_ + (size + align - 1) / align * align);
}

// Splits the found block when the policy allows; returns the part to hand out.
BlockId CachingAllocator::hand_out(BlockId block, std::int64_t size) {
  const std::int64_t rest = heap_[block].size - size;
  const AllocatorConstants& k = *policy_.constants;
  const bool fine = heap_.arena(heap_[block].arena).small || policy_.expandable_segments;
  const bool split = fine ? rest >= k.min_block : size < policy_.max_split_size.count() && rest > k.small_limit;
  if (!split) return block;
  const BlockId front = heap_.cut_front(block, size);
  heap_.insert_free(block);
  return front;
}

void CachingAllocator::use_on_stream(BlockId block, MemoryStream stream) {
  if (stream == heap_.arena(heap_[block].arena).stream) return;
  std::vector<MemoryStream>& uses = stream_uses_[block];
  const auto at = std::lower_bound(uses.begin(), uses.end(), stream);
  if (at == uses.end() || *at != stream) uses.insert(at, stream);
}

void CachingAllocator::free(BlockId block) {
  Block& b = heap_[block];
  CS_CHECK(b.live && b.allocated, "block {} at {} freed while not allocated", block, b.address);
  b.allocated = false;
  counters_.allocated.add(-b.size, request_);
  const auto uses = stream_uses_.empty() ? stream_uses_.end() : stream_uses_.find(block);
  if (uses == stream_uses_.end()) return free_block(block);
  for (const MemoryStream stream : uses->second) {
    ++b.pending_events;
    pending_[stream].push_back({block, request_});
  }
  stream_uses_.erase(uses);
}

void CachingAllocator::free_block(BlockId block) {
  Block& b = heap_[block];
  counters_.active.add(-b.size, request_);
  counters_.requested.add(-b.requested, request_);
  b.requested = 0;
  heap_.try_merge(block, b.previous);
  heap_.try_merge(block, b.next);
  heap_.insert_free(block);
}

void CachingAllocator::stream_passed(MemoryStream stream, std::size_t through) {
  std::int64_t& passed = passed_.try_emplace(stream, 0).first->second;
  passed = std::max(passed, static_cast<std::int64_t>(through));
}

void CachingAllocator::finish_event(BlockId block) {
  if (--heap_[block].pending_events > 0) return;
  completed_.push_back(heap_[block].owner);
  free_block(block);
}

void CachingAllocator::process_events() {
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto passed = passed_.find(it->first);
    std::deque<PendingEvent>& queue = it->second;
    while (passed != passed_.end() && !queue.empty() &&
           static_cast<std::int64_t>(queue.front().recorded_at) < passed->second) {
      const BlockId block = queue.front().block;
      queue.pop_front();
      finish_event(block);
    }
    it = queue.empty() ? pending_.erase(it) : std::next(it);
  }
}

void CachingAllocator::synchronize_events() {
  for (auto& [stream, queue] : pending_)
    for (const PendingEvent& event : queue) finish_event(event.block);
  pending_.clear();
}

void CachingAllocator::complete_free(MemoryId owner) {
  for (auto it = pending_.begin(); it != pending_.end();) {
    std::deque<PendingEvent>& queue = it->second;
    const auto waits =
        std::find_if(queue.begin(), queue.end(), [&](const PendingEvent& e) { return heap_[e.block].owner == owner; });
    if (waits != queue.end()) {
      const BlockId block = waits->block;
      queue.erase(waits);
      finish_event(block);
    }
    it = queue.empty() ? pending_.erase(it) : std::next(it);
  }
}

std::vector<MemoryId> CachingAllocator::take_completed() {
  return std::exchange(completed_, {});
}

// Frees unsplit large segments at least as old as the average until reserved memory is below the threshold.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::int64_t>(policy_.garbage_collection_threshold * static_cast<double>(fraction_limit_));
  const std::int64_t target = counters_.reserved.current - threshold;
  if (target <= 0) return;
  std::vector<BlockId> candidates;
  std::int64_t total_age = 0;
  for (const std::uint32_t index : heap_.arenas_of_pool(false)) {
    const FreeList& free = heap_.arena(index).free;
    for (FreeList::Cursor c = free.begin(); !free.at_end(c); c = free.next(c)) {
      const BlockId block = free.at(c).block;
      if (heap_.is_split(block) || heap_[block].expandable) continue;
      candidates.push_back(block);
      total_age += heap_.age(block);
    }
  }
  std::int64_t reclaimed = 0;
  bool released = true;
  while (reclaimed < target && released && !candidates.empty()) {
    const double limit = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    released = false;
    std::vector<BlockId> kept;
    for (const BlockId block : candidates) {
      if (static_cast<double>(heap_.age(block)) < limit) {
        kept.push_back(block);
        continue;
      }
      released = true;
      reclaimed += heap_[block].size;
      total_age -= heap_.age(block);
      release_block(block);
    }
    candidates = std::move(kept);
  }
}

// With max_split_size: frees one oversize block that is large enough, or the largest ones until their sum is.
bool CachingAllocator::release_oversize(const Wanted& wanted) {
  const std::int64_t limit = policy_.max_split_size.count();
  if (limit == std::numeric_limits<std::int64_t>::max()) return false;
  const FreeList& free = heap_.arena(wanted.arena).free;
  const std::int64_t needed = std::max(wanted.size, limit);
  const FreeList::Cursor enough = free.lower_bound(needed);
  if (!free.at_end(enough)) {
    if (heap_[free.at(enough).block].expandable) return false;
    release_block(free.at(enough).block);
    return true;
  }
  std::int64_t released = 0;
  while (released < needed && !free.empty()) {
    const FreeList::Entry largest = free.at(free.last());
    if (largest.size < limit || heap_[largest.block].expandable) break;
    released += largest.size;
    release_block(largest.block);
  }
  return released >= needed;
}

void CachingAllocator::release_cached() {
  synchronize_events();
  release_pool(false);
  release_pool(true);
}

void CachingAllocator::release_pool(bool small) {
  std::vector<BlockId> expandable;
  for (const std::uint32_t index : heap_.arenas_of_pool(small)) {
    const FreeList& free = heap_.arena(index).free;
    std::vector<BlockId> whole;
    for (FreeList::Cursor c = free.begin(); !free.at_end(c); c = free.next(c)) {
      const BlockId block = free.at(c).block;
      if (heap_[block].expandable) {
        expandable.push_back(block);
      } else if (!heap_.is_split(block)) {
        whole.push_back(block);
      }
    }
    for (const BlockId block : whole) release_block(block);
  }
  for (const BlockId block : expandable) ExpandableSegments(*this).release(block);
}

void CachingAllocator::release_block(BlockId block) {
  const Block& b = heap_[block];
  counters_.reserved.add(-b.size, request_);
  record(SegmentEventKind::kFree, b, b.address, b.size);
  heap_.erase_free(block);
  heap_.destroy(block);
}

void CachingAllocator::record(SegmentEventKind kind, const Block& block, std::int64_t address, std::int64_t size) {
  events_.push_back({kind, address, size, heap_.arena(block.arena).stream, request_});
}

}  // namespace k3sim
