#include "sim/mem/expandable_segments.h"

#include <doctest/doctest.h>

#include "sim/mem/emulate.h"

using namespace k3sim;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

MemoryId alloc(RequestLog& log, std::int64_t bytes, MemoryStream stream = 0) {
  return log.alloc({.bytes = Bytes(bytes), .stream = stream});
}

AllocatorResult run(const RequestLog& log, std::int64_t available_mib = 1 << 20) {
  AllocatorPolicy policy;
  policy.expandable_segments = true;
  return emulate(log, policy, {.total = Bytes::gib(80), .available = Bytes::mib(available_mib)});
}

}  // namespace

TEST_CASE("expandable: memory is mapped in 20 MiB pages and the last page is shared by the next request") {
  RequestLog log;
  alloc(log, 24 * kMiB);
  alloc(log, 8 * kMiB);
  alloc(log, 352 * kMiB);
  const AllocatorResult result = run(log);
  REQUIRE(result.segment_events.size() == 2);
  CHECK(result.segment_events[0].size == 40 * kMiB);
  CHECK(result.segment_events[1].size == 360 * kMiB);  // 8 MiB were left: 344 MiB more in whole pages
  REQUIRE(result.segments.size() == 1);
  CHECK(result.segments[0].total_size == 400 * kMiB);
}

TEST_CASE("expandable: small requests grow a range of their own in 2 MiB pages") {
  RequestLog log;
  alloc(log, 4096);
  alloc(log, 24 * kMiB);
  alloc(log, 1 * kMiB);
  alloc(log, 1 * kMiB);
  const AllocatorResult result = run(log);
  REQUIRE(result.segments.size() == 2);
  CHECK(result.segments[0].small);
  CHECK(result.segments[0].total_size == 4 * kMiB);
}

TEST_CASE("expandable: a growing request series reuses what was freed, unlike separate segments") {
  RequestLog log;
  for (int step = 0; step < 10; ++step) log.free(alloc(log, (100 + 10 * step) * kMiB));
  CHECK(run(log).peak_reserved() == Bytes::mib(200));
  CHECK(emulate(log).peak_reserved() == Bytes::mib(1450));
}

TEST_CASE("expandable: emptying the cache unmaps the whole pages inside free blocks only") {
  RequestLog log;
  const MemoryId front = alloc(log, 30 * kMiB), keep = alloc(log, 4 * kMiB), back = alloc(log, 66 * kMiB);
  log.free(front);
  log.free(back);
  log.empty_cache();
  const AllocatorResult result = run(log);
  CHECK(log.live(keep));
  // Page 0 lies in the front block, pages 2 to 4 in the back block; page 1 holds the live block.
  REQUIRE(result.segments.size() == 1);
  CHECK(result.segments[0].total_size == 20 * kMiB);
  CHECK(result.counters.reserved.current == 20 * kMiB);
  CHECK(result.segment_events.back().kind == SegmentEventKind::kUnmap);
}

TEST_CASE("expandable: unmapped holes are filled again at the lowest address") {
  RequestLog log;
  const MemoryId front = alloc(log, 40 * kMiB);
  alloc(log, 20 * kMiB);
  log.free(front);
  log.empty_cache();
  alloc(log, 40 * kMiB);
  const AllocatorResult result = run(log);
  REQUIRE(result.segments.size() == 1);
  CHECK(result.segments[0].total_size == 60 * kMiB);
  CHECK(result.segment_events.back().address == result.segment_events.front().address);
}

TEST_CASE("expandable: a range that was emptied disappears") {
  RequestLog log;
  log.free(alloc(log, 40 * kMiB));
  log.empty_cache();
  const AllocatorResult result = run(log);
  CHECK(result.segments.empty());
  CHECK(result.counters.reserved.current == 0);
}

TEST_CASE("expandable: when memory runs out, pages of another stream are unmapped and the request succeeds") {
  RequestLog log;
  log.free(alloc(log, 60 * kMiB, 1));
  alloc(log, 80 * kMiB, 2);
  const AllocatorResult result = run(log, 100);
  CHECK_FALSE(result.out_of_memory);
  CHECK(result.counters.retries == 1);
  CHECK(result.counters.reserved.current == 80 * kMiB);
}

TEST_CASE("expandable: a request larger than the address range is out of memory, not an endless loop") {
  RequestLog log;
  alloc(log, std::int64_t{200} << 30);
  CHECK(run(log).out_of_memory);
}
