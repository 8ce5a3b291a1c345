// Walks the block lists and checks them on the way: neighbours must touch. See the header.
#include "sim/mem/segments.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {
namespace {

MemorySegment segment_from(const BlockHeap& heap, BlockId head) {
  const Block& first = heap[head];
  MemorySegment segment;
  segment.address = first.address;
  segment.stream = heap.arena(first.arena).stream;
  segment.small = heap.arena(first.arena).small;
  segment.expandable = first.expandable;
  std::int64_t address = first.address;
  for (BlockId id = head; id != kNoBlock && heap[id].mapped; id = heap[id].next) {
    const Block& b = heap[id];
    CS_CHECK(b.live && b.address == address, "block at {} where {} was expected", b.address, address);
    address += b.size;
    const BlockState state = b.allocated            ? BlockState::kAllocated
                             : b.pending_events > 0 ? BlockState::kAwaitingFree
                                                    : BlockState::kInactive;
    segment.blocks.push_back({b.size, b.requested, state});
    segment.total_size += b.size;
    if (state == BlockState::kAllocated) segment.allocated_size += b.size;
    if (state != BlockState::kInactive) segment.active_size += b.size;
  }
  return segment;
}

}  // namespace

std::vector<MemorySegment> list_segments(const BlockHeap& heap) {
  std::vector<MemorySegment> segments;
  for (BlockId id = 0; id < heap.slots(); ++id) {
    const Block& b = heap[id];
    if (!b.live || !b.mapped || (b.previous != kNoBlock && heap[b.previous].mapped)) continue;
    segments.push_back(segment_from(heap, id));
  }
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

}  // namespace k3sim
