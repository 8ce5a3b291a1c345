// Growing and shrinking of expandable ranges; see the header. All range addresses are multiples of the page relative to
// the range's start, and an unmapped block always starts and ends on a page.
#include "sim/mem/expandable_segments.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

std::int64_t CachingAllocator::expandable_range_size(bool small) const {
  const AllocatorConstants& k = *policy_.constants;
  const std::int64_t unit = small ? k.small_segment : k.large_segment;
  const std::int64_t total = device_.total.count();
  return (total + (total >> k.address_space_shift) + unit - 1) / unit * unit;
}

std::int64_t ExpandableSegments::page(std::uint32_t arena) const {
  const AllocatorConstants& k = *a_.policy_.constants;
  return a_.heap_.arena(arena).small ? k.small_segment : k.large_segment;
}

FreeList::Cursor ExpandableSegments::best_fit(const BlockHeap& heap, const FreeList& free, FreeList::Cursor first) {
  const auto expandable_size = [&](FreeList::Cursor c) {
    const Block& b = heap[free.at(c).block];
    const bool grows = b.next != kNoBlock && !heap[b.next].mapped;
    return b.size + (grows ? heap[b.next].size : 0);
  };
  FreeList::Cursor best = first;
  for (FreeList::Cursor c = free.next(first); heap[free.at(best).block].expandable && !free.at_end(c);
       c = free.next(c)) {
    if (expandable_size(c) >= expandable_size(best)) break;
    best = c;
  }
  return best;
}

BlockId ExpandableSegments::find_stretch(std::uint32_t arena, std::int64_t size) {
  BlockHeap& heap = a_.heap_;
  for (const auto& [address, unmapped] : heap.arena(arena).unmapped) {
    BlockId first = unmapped;
    if (heap.is_available(heap[unmapped].previous)) first = heap[unmapped].previous;
    std::int64_t length = 0;
    for (BlockId b = first; length < size && heap.is_available(b); b = heap[b].next) length += heap[b].size;
    if (length >= size) return first;
  }
  Block range;
  range.size = a_.expandable_range_size(heap.arena(arena).small);
  if (range.size < size) return kNoBlock;  // larger than the device: never satisfiable
  range.address = a_.new_address(range.size);
  range.arena = arena;
  range.mapped = false;
  range.expandable = true;
  const BlockId id = heap.create(range);
  heap.insert_unmapped(id);
  return id;
}

bool ExpandableSegments::map(BlockId block, std::int64_t size) {
  BlockHeap& heap = a_.heap_;
  const std::int64_t unit = page(heap[block].arena);
  const std::int64_t mapped = (size + unit - 1) / unit * unit;
  if (mapped > a_.device_.available.count() - a_.counters_.reserved.current) return false;
  const std::int64_t address = heap[block].address;
  heap.erase_unmapped(block);
  heap[block].mapped = true;
  if (mapped < heap[block].size) {
    Block rest = heap[block];
    rest.address += mapped;
    rest.size -= mapped;
    rest.mapped = false;
    const BlockId rest_id = heap.create(rest);
    heap.splice(rest_id, block, heap[block].next);
    heap.insert_unmapped(rest_id);
    heap[block].size = mapped;
  }
  heap.try_merge(block, heap[block].previous);
  heap.try_merge(block, heap[block].next);
  heap.insert_free(block);
  a_.counters_.reserved.add(mapped, a_.request_);
  a_.record(SegmentEventKind::kMap, heap[block], address, mapped);
  return true;
}

BlockId ExpandableSegments::allocate(std::uint32_t arena, std::int64_t size) {
  BlockHeap& heap = a_.heap_;
  BlockId block = find_stretch(arena, size);
  if (block == kNoBlock) return kNoBlock;
  if (!heap[block].mapped && !map(block, std::min(heap[block].size, size))) return kNoBlock;
  while (heap[block].size < size) {
    // Here the stretch is: free, then unmapped, then perhaps more; mapping merges the two.
    const BlockId next = heap[block].next;
    CS_CHECK(next != kNoBlock && !heap[next].mapped, "expandable stretch at {} ends early", heap[block].address);
    if (!map(next, std::min(size - heap[block].size, heap[next].size))) return kNoBlock;
    block = next;
  }
  heap.erase_free(block);
  return block;
}

void ExpandableSegments::release(BlockId block) {
  BlockHeap& heap = a_.heap_;
  // Pages count from the range's start, which is the address of the first block in the list.
  BlockId first = block;
  while (heap[first].previous != kNoBlock) first = heap[first].previous;
  const std::int64_t base = heap[first].address;
  const std::int64_t unit = page(heap[block].arena);
  const std::int64_t begin = base + (heap[block].address - base + unit - 1) / unit * unit;
  const std::int64_t end = base + (heap[block].address + heap[block].size - base) / unit * unit;
  if (begin >= end) return;
  heap.erase_free(block);
  const auto cut_back = [&](std::int64_t keep) {
    Block rest = heap[block];
    rest.address += keep;
    rest.size -= keep;
    const BlockId rest_id = heap.create(rest);
    heap.splice(rest_id, block, heap[block].next);
    heap[block].size = keep;
    heap.insert_free(rest_id);
  };
  if (begin > heap[block].address) heap.insert_free(heap.cut_front(block, begin - heap[block].address));
  if (heap[block].size > end - begin) cut_back(end - begin);
  heap[block].mapped = false;
  heap.try_merge(block, heap[block].previous);
  heap.try_merge(block, heap[block].next);
  heap.insert_unmapped(block);
  a_.counters_.reserved.add(-(end - begin), a_.request_);
  a_.record(SegmentEventKind::kUnmap, heap[block], begin, end - begin);
  if (!heap.is_split(block)) {
    heap.erase_unmapped(block);
    heap.destroy(block);
  }
}

}  // namespace k3sim
