// Driver of the emulation and the snapshot of its final state; see the header.
#include "sim/mem/emulate.h"

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

// Runs one log and remembers which block each id has.
class Replay {
 public:
  Replay(const RequestLog& log, const AllocatorPolicy& policy, const DeviceMemory& device)
      : allocator_(policy, device), device_(device), blocks_(log.allocations(), kNoBlock) {
    result_.block_bytes.assign(log.allocations(), 0);
  }

  // False when out of memory.
  bool step(const MemoryRequest& r, std::size_t position) {
    allocator_.at_request(position);
    switch (r.kind) {
      case MemoryRequestKind::kAlloc: return allocate(r, position);
      case MemoryRequestKind::kFree: allocator_.free(blocks_[r.id]); break;
      case MemoryRequestKind::kUseOnStream: allocator_.use_on_stream(blocks_[r.id], r.stream); break;
      case MemoryRequestKind::kStreamPassed:
        allocator_.stream_passed(r.stream, static_cast<std::size_t>(r.value));
        break;
      case MemoryRequestKind::kFreeCompleted: allocator_.complete_free(r.id); break;
      case MemoryRequestKind::kEmptyCache: allocator_.empty_cache(); break;
    }
    return true;
  }

  AllocatorResult finish() {
    result_.counters = allocator_.counters();
    result_.segment_events = allocator_.segment_events();
    result_.segments = list_segments(allocator_.heap());
    return std::move(result_);
  }

 private:
  bool allocate(const MemoryRequest& r, std::size_t position) {
    const BlockId block = allocator_.allocate(r.id, r.value, r.stream);
    blocks_[r.id] = block;
    if (block != kNoBlock) {
      result_.block_bytes[r.id] = allocator_.heap()[block].size;
      return true;
    }
    const AllocatorCounters& c = allocator_.counters();
    result_.out_of_memory = OutOfMemory{.request = position,
                                        .asked = Bytes(r.value),
                                        .allocated = Bytes(c.allocated.current),
                                        .reserved = Bytes(c.reserved.current),
                                        .available = device_.available};
    return false;
  }

  CachingAllocator allocator_;
  DeviceMemory device_;
  std::vector<BlockId> blocks_;
  AllocatorResult result_;
};

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

AllocatorResult emulate(const RequestLog& log, const AllocatorPolicy& policy, const DeviceMemory& device) {
  Replay replay(log, policy, device);
  for (std::size_t i = 0; i < log.size(); ++i)
    if (!replay.step(log.requests()[i], i)) break;
  return replay.finish();
}

}  // namespace k3sim
