// Expandable segments: per (pool, stream) one range of address space, 1 1/8 times the device, that is backed by memory
// page by page (2 MiB pages for the small pool, 20 MiB for the large one). A request extends the lowest
// free-or-unmapped stretch that is long enough; giving memory back unmaps the whole pages inside free blocks. Source:
// c10/cuda/CUDACachingAllocator.cpp (ExpandableSegment, find_expandable_block, map_block, unmap_block).
#pragma once

#include "sim/mem/caching_allocator.h"

namespace k3sim {

class ExpandableSegments {
 public:
  explicit ExpandableSegments(CachingAllocator& allocator) : a_(allocator) {}

  // A free mapped block of at least `size` bytes, taken out of its free list, or kNoBlock when memory runs out.
  BlockId allocate(std::uint32_t arena, std::int64_t size);
  // Unmaps the whole pages of a free block; drops the range when nothing else is left in it.
  void release(BlockId block);
  // Among equal candidates prefer the one whose free-plus-expandable length is smallest.
  static FreeList::Cursor best_fit(const BlockHeap& heap, const FreeList& free, FreeList::Cursor first);

 private:
  BlockId find_stretch(std::uint32_t arena, std::int64_t size);
  bool map(BlockId block, std::int64_t size);
  std::int64_t page(std::uint32_t arena) const;

  CachingAllocator& a_;
};

}  // namespace k3sim
