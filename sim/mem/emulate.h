// Replays a request log through the emulated allocator: log -> allocated, reserved, segments, out of memory.
// A pure function; stops at the first request that does not fit (the program would have ended there).
// Source: engine-design notes section 10; the final segment list has the form of torch.cuda.memory_snapshot().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/mem/allocator_policy.h"
#include "sim/mem/caching_allocator.h"
#include "sim/mem/request_log.h"
#include "sim/mem/segments.h"

namespace k3sim {

struct OutOfMemory {
  std::size_t request = 0;  // log position
  Bytes asked;              // as requested
  Bytes allocated;          // in use at that moment
  Bytes reserved;           // after everything unused was given back
  Bytes available;          // what the device offered in all
  Bytes short_by() const { return reserved + asked > available ? reserved + asked - available : Bytes(0); }
};

struct AllocatorResult {
  AllocatorCounters counters;
  std::vector<SegmentEvent> segment_events;
  std::vector<MemorySegment> segments;    // at the end, by address
  std::vector<std::int64_t> block_bytes;  // by MemoryId: bytes of the block it got (0: never reached)
  std::optional<OutOfMemory> out_of_memory;

  Bytes peak_allocated() const { return Bytes(counters.allocated.peak); }
  Bytes peak_reserved() const { return Bytes(counters.reserved.peak); }
  // Reserved at its peak beyond what was allocated at its own peak.
  Bytes overhead() const { return peak_reserved() - peak_allocated(); }
};

AllocatorResult emulate(const RequestLog& log, const AllocatorPolicy& policy = {}, const DeviceMemory& device = {});

}  // namespace k3sim
