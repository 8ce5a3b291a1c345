// Driver of the emulation; see the header.
#include "sim/mem/emulate.h"

#include <utility>

namespace k3sim {
namespace {

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
      case MemoryRequestKind::kAlloc:
        return allocate(r, position);
      case MemoryRequestKind::kFree:
        allocator_.free(blocks_[r.id]);
        break;
      case MemoryRequestKind::kUseOnStream:
        allocator_.use_on_stream(blocks_[r.id], r.stream);
        break;
      case MemoryRequestKind::kStreamPassed:
        allocator_.stream_passed(r.stream, static_cast<std::size_t>(r.value));
        break;
      case MemoryRequestKind::kFreeCompleted:
        allocator_.complete_free(r.id);
        break;
      case MemoryRequestKind::kEmptyCache:
        allocator_.empty_cache();
        break;
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

AllocatorResult emulate(const RequestLog& log, const AllocatorPolicy& policy, const DeviceMemory& device) {
  Replay replay(log, policy, device);
  for (std::size_t i = 0; i < log.size(); ++i)
    if (!replay.step(log.requests()[i], i)) break;
  return replay.finish();
}

}  // namespace k3sim
