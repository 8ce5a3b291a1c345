// Memory snapshots of a training process: the request trace the allocator recorded and the segments at its end.
// Two forms are read, told apart by content, both also gzip-compressed:
//   - the pickle written by torch.cuda.memory._dump_snapshot (data-only pickle, see pickle_reader.h);
//   - the JSON form {"torch", "alloc_conf", "trace": [[action, addr, size, stream]...], "segments": [[address,
//   total_size,
//     allocated_size, active_size, type, stream, [[size, state]...]]...], "peak_allocated", "peak_reserved", ...}.
// Every damaged, truncated or inconsistent file gives a ConfigError that names the file and the place.
// Source: torch/cuda/memory.py (_snapshot, TraceEntry, Segment, Block), torch/csrc/cuda/memory_snapshot.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/mem/emulate.h"

namespace k3sim {

enum class SnapshotAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,
  kOther  // snapshot markers and user annotations
};

struct SnapshotEvent {
  SnapshotAction action = SnapshotAction::kOther;
  std::int64_t address = 0;
  std::int64_t size = 0;  // as requested, for alloc and free
  MemoryStream stream = 0;
};

struct MemorySnapshot {
  std::string file;
  std::string torch_version;  // empty when the file does not say
  std::string alloc_conf;     // text of PYTORCH_ALLOC_CONF
  std::vector<SnapshotEvent> trace;
  std::vector<MemorySegment> segments;  // by address
  std::optional<Bytes> peak_allocated;  // process statistics, when the file has them
  std::optional<Bytes> peak_reserved;
  std::size_t private_pool_segments = 0;  // segments of CUDA-graph pools, which the emulation does not separate
};

// `device`: index of the GPU in a pickle; negative: the one with the longest trace.
MemorySnapshot load_memory_snapshot(const std::string& path, int device = -1);

const char* to_string(SnapshotAction action);

}  // namespace k3sim
