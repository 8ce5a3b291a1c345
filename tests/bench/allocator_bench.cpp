// Requests per second of the allocator emulation: a random stress with about a thousand live blocks, sizes from 512 B
// to 128 MiB, as a training step of a large model has. Bar: 3 million requests per second (one core). Source:
// engine-design notes sections 10 and 17.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/rng.h"
#include "sim/mem/emulate.h"
#include "tests/bench/bench_report.h"

namespace k3sim::bench {
namespace {

RequestLog stress_log(std::size_t requests, std::size_t live_target) {
  auto below = [draw = std::uint64_t{0}](std::uint64_t n) mutable { return random_below({.seed = 1}, draw++, n); };
  RequestLog log;
  std::vector<MemoryId> live;
  while (log.size() < requests) {
    const bool grow = live.size() < live_target / 3 || (live.size() < live_target && below(2) == 0);
    if (grow) {
      const auto bytes = static_cast<std::int64_t>(std::uint64_t{512} << below(18));
      const auto extra = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(bytes)));
      live.push_back(log.alloc({.bytes = Bytes(bytes + extra), .stream = static_cast<MemoryStream>(below(3))}));
    } else {
      std::swap(live[static_cast<std::size_t>(below(live.size()))], live.back());
      log.free(live.back());
      live.pop_back();
    }
  }
  return log;
}

void allocator_requests(benchmark::State& state, bool expandable) {
  const RequestLog log = stress_log(1'000'000, static_cast<std::size_t>(state.range(0)));
  AllocatorPolicy policy;
  policy.expandable_segments = expandable;
  DeviceMemory device;
  device.total = Bytes::gib(1000);
  for (auto _ : state) benchmark::DoNotOptimize(emulate(log, policy, device).counters.reserved.peak);
  report_rate(state, "requests", log.size(), 3e6);
}

BENCHMARK_CAPTURE(allocator_requests, default_policy, false)->Arg(1200)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(allocator_requests, expandable, true)->Arg(1200)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace k3sim::bench
