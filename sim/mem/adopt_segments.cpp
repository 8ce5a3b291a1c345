// CachingAllocator::adopt: puts a known set of segments and blocks into an empty allocator.
// Each segment (or expandable range) starts as one block and is cut from the front, so the block lists come out the
// same way as by allocation.
#include <algorithm>
#include <tuple>

#include "sim/base/check.h"
#include "sim/mem/caching_allocator.h"

namespace k3sim {

// Makes the front of the free or unmapped stretch `at` into this block; returns it. `at` keeps the rest, if any.
BlockId CachingAllocator::adopt_block(const SegmentBlock& block, BlockId at, MemoryId owner) {
  const BlockId id = heap_[at].size > block.size ? heap_.cut_front(at, block.size) : at;
  Block& b = heap_[id];
  CS_CHECK(b.size == block.size, "adopted block of {} bytes in {} bytes at {}", block.size, b.size, b.address);
  b.mapped = true;
  counters_.reserved.add(b.size, request_);
  if (block.state == BlockState::kInactive) {
    heap_.insert_free(id);
    return id;
  }
  b.owner = owner;
  b.requested = block.requested > 0 ? block.requested : block.size;
  counters_.active.add(b.size, request_);
  counters_.requested.add(b.requested, request_);
  if (block.state == BlockState::kAllocated) {
    b.allocated = true;
    counters_.allocated.add(b.size, request_);
  } else {
    b.pending_events = 1;
    pending_[kForeignStream].push_back({id, request_});
  }
  return id;
}

std::vector<BlockId> CachingAllocator::adopt(std::vector<MemorySegment> segments, MemoryId first_owner) {
  CS_CHECK(heap_.slots() == 0, "adopt needs an empty allocator, it has {} blocks", heap_.slots());
  std::sort(segments.begin(), segments.end(), [](const MemorySegment& a, const MemorySegment& b) {
    return std::tie(a.small, a.stream, a.address) < std::tie(b.small, b.stream, b.address);
  });
  std::vector<BlockId> used;
  BlockId range = kNoBlock;  // unmapped end of the current expandable range
  for (const MemorySegment& s : segments) {
    const std::uint32_t arena = heap_.arena_index(s.small, s.stream);
    BlockId at = range;
    if (!s.expandable || range == kNoBlock || heap_[range].arena != arena) {
      if (range != kNoBlock) heap_.insert_unmapped(range);
      Block whole;
      whole.address = s.address;
      whole.size = s.expandable ? expandable_range_size(s.small) : s.total_size;
      whole.arena = arena;
      whole.mapped = false;
      whole.expandable = s.expandable;
      at = heap_.create(whole);
      range = s.expandable ? at : kNoBlock;
    } else if (const std::int64_t gap = s.address - heap_[range].address; gap > 0) {
      heap_.insert_unmapped(heap_.cut_front(range, gap));
    }
    for (const SegmentBlock& block : s.blocks) {
      const BlockId id = adopt_block(block, at, first_owner + static_cast<MemoryId>(used.size()));
      if (block.state != BlockState::kInactive) used.push_back(id);
    }
  }
  if (range != kNoBlock) heap_.insert_unmapped(range);
  return used;
}

}  // namespace k3sim
