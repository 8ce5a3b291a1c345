#include "sim/mem/caching_allocator.h"

#include <doctest/doctest.h>

#include "sim/mem/emulate.h"

using namespace k3sim;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

MemoryId alloc(RequestLog& log, std::int64_t bytes, MemoryStream stream = 0) {
  return log.alloc({.bytes = Bytes(bytes), .stream = stream});
}

std::int64_t reserved_now(const RequestLog& log, const AllocatorPolicy& policy = {}, const DeviceMemory& device = {}) {
  return emulate(log, policy, device).counters.reserved.current;
}

DeviceMemory device_of(std::int64_t mib) {
  return {.total = Bytes::mib(mib), .available = Bytes::mib(mib)};
}

}  // namespace

TEST_CASE("allocator: small requests share one 2 MiB segment") {
  RequestLog log;
  for (int i = 0; i < 4096; ++i) alloc(log, 500);
  CHECK(reserved_now(log) == 2 * kMiB);
  alloc(log, 1);
  CHECK(reserved_now(log) == 4 * kMiB);
}

TEST_CASE("allocator: requests of 1 to 10 MiB share 20 MiB segments, larger ones get their own") {
  RequestLog log;
  alloc(log, 9 * kMiB);
  alloc(log, 9 * kMiB);
  CHECK(reserved_now(log) == 20 * kMiB);
  alloc(log, 10 * kMiB);
  CHECK(reserved_now(log) == 30 * kMiB);
  alloc(log, 2 * kMiB);  // the 2 MiB left of the first segment serve it exactly
  CHECK(reserved_now(log) == 30 * kMiB);
}

TEST_CASE("allocator: a remainder of 1 MiB or less stays with a large block") {
  RequestLog log;
  alloc(log, 11 * kMiB);
  AllocatorResult result = emulate(log);
  CHECK(result.block_bytes[0] == 12 * kMiB);
  CHECK(result.peak_allocated() == Bytes::mib(12));
  CHECK(result.counters.requested.peak == 11 * kMiB);
  RequestLog other;
  other.free(alloc(other, 14 * kMiB));
  alloc(other, 11 * kMiB);  // remainder of 3 MiB is split off
  CHECK(emulate(other).block_bytes[1] == 11 * kMiB);
}

TEST_CASE("allocator: best fit takes the smallest sufficient free block") {
  RequestLog log;
  const MemoryId big = alloc(log, 40 * kMiB), middle = alloc(log, 24 * kMiB), tight = alloc(log, 30 * kMiB);
  log.free(big);
  log.free(middle);
  log.free(tight);
  alloc(log, 26 * kMiB);
  const AllocatorResult result = emulate(log);
  REQUIRE(result.segments.size() == 3);
  CHECK(result.segments[2].allocated_size == 26 * kMiB);  // from the 30 MiB segment
}

TEST_CASE("allocator: freed neighbours merge back into one block") {
  RequestLog log;
  const MemoryId a = alloc(log, 4 * kMiB), b = alloc(log, 4 * kMiB), c = alloc(log, 4 * kMiB);
  log.free(a);
  log.free(c);
  CHECK(emulate(log).segments.at(0).blocks.size() == 3);
  log.free(b);
  const AllocatorResult result = emulate(log);
  REQUIRE(result.segments.at(0).blocks.size() == 1);
  CHECK(result.segments[0].blocks[0].size == 20 * kMiB);
}

TEST_CASE("allocator: a stream never gets another stream's cached memory") {
  RequestLog log;
  log.free(alloc(log, 30 * kMiB, 1));
  alloc(log, 30 * kMiB, 2);
  CHECK(reserved_now(log) == 60 * kMiB);
}

TEST_CASE("allocator: memory used on another stream returns only after that stream passed") {
  RequestLog log;
  const MemoryId a = alloc(log, 30 * kMiB, 1);
  log.use_on_stream(a, 2);
  log.use_on_stream(a, 1);  // its own stream needs no wait
  log.free(a);
  const MemoryId b = alloc(log, 30 * kMiB, 1);
  AllocatorResult result = emulate(log);
  CHECK(result.counters.reserved.current == 60 * kMiB);
  CHECK(result.counters.allocated.current == 30 * kMiB);
  CHECK(result.counters.active.current == 60 * kMiB);
  CHECK(result.segments[0].blocks[0].state == BlockState::kAwaitingFree);
  log.stream_passed(2);
  alloc(log, 30 * kMiB, 1);
  result = emulate(log);
  CHECK(result.counters.reserved.current == 60 * kMiB);
  CHECK(result.counters.active.current == 60 * kMiB);
  CHECK(log.live(b));
}

TEST_CASE("allocator: a stream that passed an earlier position does not release later frees") {
  RequestLog log;
  const MemoryId a = alloc(log, 30 * kMiB, 1);
  log.use_on_stream(a, 2);
  const std::size_t before = log.size();
  log.free(a);
  log.stream_passed(2, before);
  alloc(log, 30 * kMiB, 1);
  CHECK(reserved_now(log) == 60 * kMiB);
}

TEST_CASE("allocator: before giving up it returns every unused segment and tries again") {
  RequestLog log;
  const MemoryId a = alloc(log, 30 * kMiB), b = alloc(log, 40 * kMiB);
  log.free(a);
  log.free(b);
  alloc(log, 60 * kMiB);
  const AllocatorResult result = emulate(log, {}, device_of(80));
  CHECK_FALSE(result.out_of_memory);
  CHECK(result.counters.retries == 1);
  CHECK(result.counters.reserved.current == 60 * kMiB);
  REQUIRE(result.segment_events.size() == 5);
  CHECK(result.segment_events[2].kind == SegmentEventKind::kFree);
  CHECK(result.segment_events[2].size == 30 * kMiB);  // ascending size
}

TEST_CASE("allocator: the retry also waits for deferred frees") {
  RequestLog log;
  const MemoryId a = alloc(log, 60 * kMiB, 1);
  log.use_on_stream(a, 7);
  log.free(a);
  alloc(log, 50 * kMiB, 3);
  CHECK_FALSE(emulate(log, {}, device_of(80)).out_of_memory);
}

TEST_CASE("allocator: out of memory says where, how much, and stops there") {
  RequestLog log;
  alloc(log, 30 * kMiB);
  const MemoryId half = alloc(log, 2 * kMiB);
  alloc(log, 40 * kMiB);
  log.free(half);
  const AllocatorResult result = emulate(log, {}, device_of(80));
  REQUIRE(result.out_of_memory);
  CHECK(result.out_of_memory->request == 2);
  CHECK(result.out_of_memory->asked == Bytes::mib(40));
  CHECK(result.out_of_memory->reserved == Bytes::mib(50));
  CHECK(result.out_of_memory->short_by() == Bytes::mib(10));
  CHECK(result.counters.allocated.current == 32 * kMiB);
}

TEST_CASE("allocator: max_split_size keeps oversize blocks whole and small requests away from them") {
  const AllocatorPolicy policy = parse_alloc_conf("max_split_size_mb:64");
  RequestLog log;
  log.free(alloc(log, 100 * kMiB));
  alloc(log, 30 * kMiB);  // may not take the 100 MiB block
  CHECK(reserved_now(log, policy) == 130 * kMiB);
  CHECK(reserved_now(log) == 100 * kMiB);
  alloc(log, 81 * kMiB);  // within 20 MiB of it: takes it whole
  const AllocatorResult result = emulate(log, policy);
  CHECK(result.counters.reserved.current == 130 * kMiB);
  CHECK(result.block_bytes[2] == 100 * kMiB);
}

TEST_CASE("allocator: with max_split_size a full device first gives back one sufficient oversize block") {
  const AllocatorPolicy policy = parse_alloc_conf("max_split_size_mb:64");
  RequestLog log;
  const MemoryId small = alloc(log, 30 * kMiB), wide = alloc(log, 100 * kMiB);
  log.free(small);
  log.free(wide);
  alloc(log, 70 * kMiB);
  const AllocatorResult result = emulate(log, policy, device_of(140));
  CHECK(result.counters.retries == 0);
  CHECK(result.counters.reserved.current == 100 * kMiB);  // the 30 MiB segment stays cached
}

TEST_CASE("allocator: garbage collection frees segments that lay unused longest") {
  AllocatorPolicy policy = parse_alloc_conf("garbage_collection_threshold:0.4,per_process_memory_fraction:1.0");
  RequestLog log;
  const MemoryId old = alloc(log, 30 * kMiB), fresh = alloc(log, 90 * kMiB);
  log.free(old);
  for (int i = 0; i < 5; ++i) log.free(alloc(log, 12 * kMiB, 1));  // five searches pass while the 30 MiB lie unused
  log.free(fresh);
  alloc(log, 100 * kMiB);  // 132 MiB reserved, the threshold is 120 MiB: the oldest segment is enough
  const AllocatorResult with = emulate(log, policy, device_of(300));
  CHECK(with.counters.reserved.current == (90 + 12 + 100) * kMiB);
  CHECK(with.counters.retries == 0);
  policy.garbage_collection_threshold = 0;
  CHECK(emulate(log, policy, device_of(300)).counters.reserved.current == (30 + 90 + 12 + 100) * kMiB);
}

TEST_CASE("allocator: the memory fraction limits reserved memory") {
  const AllocatorPolicy policy = parse_alloc_conf("per_process_memory_fraction:0.5");
  RequestLog log;
  alloc(log, 60 * kMiB);
  alloc(log, 60 * kMiB);
  const AllocatorResult result = emulate(log, policy, device_of(200));
  REQUIRE(result.out_of_memory);
  CHECK(result.out_of_memory->request == 1);
}

TEST_CASE("allocator: adopted memory is reused like memory it allocated itself") {
  MemorySegment held{.address = 1 << 20, .total_size = 40 * kMiB, .stream = 5, .blocks = {}};
  held.blocks = {{12 * kMiB, 12 * kMiB, BlockState::kAllocated}, {28 * kMiB, 0, BlockState::kInactive}};
  CachingAllocator allocator({}, {});
  const std::vector<BlockId> used = allocator.adopt({held}, 0);
  REQUIRE(used.size() == 1);
  CHECK(allocator.counters().reserved.current == 40 * kMiB);
  CHECK(allocator.allocate(1, 28 * kMiB, 5) != kNoBlock);
  CHECK(allocator.segment_events().empty());
  allocator.free(used[0]);
  CHECK(list_segments(allocator.heap()).at(0).allocated_size == 28 * kMiB);
}
