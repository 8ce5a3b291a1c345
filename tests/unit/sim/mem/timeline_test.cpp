#include "sim/mem/timeline.h"

#include <doctest/doctest.h>

using namespace k3sim;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Example {
  RequestLog log;
  MemoryId weights, act0, act1, act2;
  Example() {
    weights = log.alloc({.bytes = Bytes::mib(40), .category = 0, .tag = 7});
    act0 = log.alloc({.bytes = Bytes::mib(20), .category = 1, .tag = 8});
    act1 = log.alloc({.bytes = Bytes::mib(30), .category = 1, .tag = 9});
    log.free(act0);
    act2 = log.alloc({.bytes = Bytes::mib(12), .category = 2});
    log.free(act1);
    log.free(act2);
  }
};

}  // namespace

TEST_CASE("timeline: the peak names who is alive, largest first") {
  const Example e;
  const MemoryTimeline t = build_timeline(e.log, emulate(e.log), {.categories = {"weights", "activations"}});
  CHECK(t.peak_request == 2);
  REQUIRE(t.at_peak.size() == 3);
  CHECK(t.at_peak[0].id == e.weights);
  CHECK(t.at_peak[0].tag == 7);
  CHECK(t.at_peak[1].bytes == Bytes::mib(30));
  CHECK(t.at_failure.empty());
  REQUIRE(t.breakdown.size() == 3);
  CHECK(t.breakdown[1].at_peak == Bytes::mib(50));
  CHECK(t.breakdown[2].name == "category 2");
  CHECK(t.breakdown[2].at_peak == Bytes(0));
  CHECK(t.breakdown[2].own_peak == Bytes::mib(12));
}

TEST_CASE("timeline: every point's categories sum to its allocated bytes and the last equals the counters") {
  const Example e;
  const AllocatorResult result = emulate(e.log);
  const MemoryTimeline t = build_timeline(e.log, result, {});
  REQUIRE(t.curve.size() == e.log.size());
  for (const CurvePoint& p : t.curve) {
    Bytes sum;
    for (const Bytes b : p.by_category) sum += b;
    CHECK(sum == p.allocated);
    CHECK(p.reserved >= p.allocated);
  }
  CHECK(t.curve.back().allocated.count() == result.counters.allocated.current);
  CHECK(t.curve.back().reserved.count() == result.counters.reserved.current);
}

TEST_CASE("timeline: a thinned curve keeps the peak") {
  RequestLog log;
  for (int i = 0; i < 5000; ++i) log.free(log.alloc({.bytes = Bytes(i == 3333 ? 50 * kMiB : 2 * kMiB)}));
  const MemoryTimeline t = build_timeline(log, emulate(log), {.categories = {}, .max_points = 100});
  CHECK(t.curve.size() <= 100);
  Bytes largest;
  for (const CurvePoint& p : t.curve) largest = std::max(largest, p.allocated);
  CHECK(largest == Bytes::mib(50));
}

TEST_CASE("timeline: a failure lists who held the memory") {
  const Example e;
  const AllocatorResult result = emulate(e.log, {}, {.total = Bytes::mib(80), .available = Bytes::mib(80)});
  const MemoryTimeline t = build_timeline(e.log, result, {});
  REQUIRE(result.out_of_memory);
  CHECK(result.out_of_memory->request == 2);
  REQUIRE(t.at_failure.size() == 2);
  CHECK(t.at_failure[0].id == e.weights);
  CHECK(t.curve.back().allocated == Bytes::mib(60));
}
