// The log of memory requests in host issue order: what a program asks of a caching allocator, without times.
// Allocation and free happen when the host runs ahead of the device, so the emulation needs the order only; times are
// attached afterwards for plotting. Categories and tags are opaque numbers of the caller (names are given to timeline).
// Source: engine-design notes section 10 ("the request log follows host issue order").
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace k3sim {

using MemoryId = std::uint32_t;     // one allocation, numbered 0, 1, 2 ... in the order of allocation
using MemoryStream = std::int64_t;  // stream handle; only equality and order matter

enum class MemoryRequestKind : std::uint8_t {
  kAlloc,          // id, bytes, stream
  kFree,           // id; deferred when kUseOnStream came before
  kUseOnStream,    // id, stream: record_stream, the memory is also used on that stream
  kStreamPassed,   // stream, through: work issued on stream before log position `through` has finished on the device
  kFreeCompleted,  // id: the deferred free of id completes here (measured logs)
  kEmptyCache,     // give every unused segment back to the driver
};

struct MemoryRequest {
  std::int64_t value = 0;  // bytes of kAlloc, log position of kStreamPassed
  MemoryStream stream = 0;
  MemoryId id = 0;
  std::uint32_t tag = 0;  // caller's own reference, for example the operation
  MemoryRequestKind kind = MemoryRequestKind::kAlloc;
  std::uint8_t category = 0;
};

struct AllocationSpec {
  Bytes bytes;  // > 0
  MemoryStream stream = 0;
  std::uint8_t category = 0;
  std::uint32_t tag = 0;
};

class RequestLog {
 public:
  // Requires: spec.bytes > 0. Returns the id to free later.
  MemoryId alloc(const AllocationSpec& spec) {
    CS_CHECK(spec.bytes.count() > 0, "an allocation of {} bytes", spec.bytes.count());
    const auto id = static_cast<MemoryId>(live_.size());
    live_.push_back(true);
    push({spec.bytes.count(), spec.stream, id, spec.tag, MemoryRequestKind::kAlloc, spec.category});
    return id;
  }
  // Requires: id is live.
  void free(MemoryId id) {
    check_live(id);
    live_[id] = false;
    push({0, 0, id, 0, MemoryRequestKind::kFree, 0});
  }
  // record_stream. Requires: id is live.
  void use_on_stream(MemoryId id, MemoryStream stream) {
    check_live(id);
    push({0, stream, id, 0, MemoryRequestKind::kUseOnStream, 0});
  }
  // Everything the host issued on `stream` before log position `through` (default: until now) has finished.
  void stream_passed(MemoryStream stream, std::size_t through) {
    push({static_cast<std::int64_t>(through), stream, 0, 0, MemoryRequestKind::kStreamPassed, 0});
  }
  void stream_passed(MemoryStream stream) { stream_passed(stream, requests_.size()); }
  // Requires: id was freed. Completes its deferred free; nothing happens when it completed already.
  void free_completed(MemoryId id) {
    CS_CHECK(id < live_.size() && !live_[id], "free_completed of id {} before free", id);
    push({0, 0, id, 0, MemoryRequestKind::kFreeCompleted, 0});
  }
  void empty_cache() { push({0, 0, 0, 0, MemoryRequestKind::kEmptyCache, 0}); }

  const std::vector<MemoryRequest>& requests() const { return requests_; }
  std::size_t size() const { return requests_.size(); }
  std::size_t allocations() const { return live_.size(); }
  bool live(MemoryId id) const { return id < live_.size() && live_[id]; }
  void reserve(std::size_t n) { requests_.reserve(n); }

 private:
  void push(const MemoryRequest& r) { requests_.push_back(r); }
  void check_live(MemoryId id) const { CS_CHECK(live(id), "memory id {} is not live", id); }

  std::vector<MemoryRequest> requests_;
  std::vector<bool> live_;
};

}  // namespace k3sim
