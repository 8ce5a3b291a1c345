// PyTorch profiler traces (Kineto's Chrome JSON, plain or gzip), read as a stream: 64 KiB of text at a time and only
// the GPU's events, the annotations and the launch times stay in memory (about 60 bytes per kernel).
//
// GPU slices have cat kernel, gpu_memcpy or gpu_memset, pid = device, tid = stream, args.correlation = the launch they
// come from; NCCL kernels carry "Collective name", "In msg nelems", "dtype", "Group size". Times are microseconds with
// up to three decimals. A trace that ends in the middle is used up to its last whole event.
// Source: pytorch/kineto libkineto/src/output_json.cpp, include/MetadataFieldCatalog.h; engine-design section 13.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace k3sim {

enum class GpuEventKind : std::uint8_t { kernel, memcpy, memset };

struct GpuEvent {
  std::int64_t start_ns = 0, end_ns = 0;  // from the first event of the trace on
  std::int64_t launched_ns = -1;          // end of the host call; -1: not in the trace
  std::int32_t name = 0;                  // index in names
  std::int32_t device = 0, stream = 0;
  std::int32_t collective = -1;  // index in names
  std::int32_t group_size = 0;
  std::int32_t operation = -1;  // index in operations
  std::int64_t message_bytes = 0;
  GpuEventKind kind = GpuEventKind::kernel;
};

struct Annotation {  // record_function, for example "PP:2F0" or "attn(F)"
  std::int64_t start_ns = 0, end_ns = 0;
  std::int32_t name = 0;
  std::int32_t device = -1;  // of a gpu_user_annotation; -1: host
};

// A host operation that was recorded with shapes (record_shapes) and launches matrix products or attention.
struct ShapedOperation {
  std::int32_t name = 0;
  std::int32_t dims = 0;  // "[[4096,7168],[7168,1536]]", index in names
  std::int32_t type = 0;  // of the first tensor, index in names
};

struct KinetoTrace {
  std::vector<std::string> names;
  std::vector<GpuEvent> events;  // in order of start
  std::vector<Annotation> annotations;
  std::vector<ShapedOperation> operations;
  std::string gpu_name;
  int rank = -1, world_size = 0;
  std::int64_t events_read = 0;  // of all kinds
  bool truncated = false;
  std::string damage;  // what was wrong when truncated
  const std::string& name_of(const GpuEvent& e) const { return names[static_cast<std::size_t>(e.name)]; }
};

// Throws ConfigError when the file cannot be read, is no JSON at all or holds no GPU event.
KinetoTrace load_kineto(const std::string& path);

}  // namespace k3sim
