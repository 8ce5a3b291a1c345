// Every benchmark prints its rate beside the bar it has to meet (engine-design section 17) and the ratio of both.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>

namespace k3sim::bench {

// `bar` in items per second.
inline void report_rate(benchmark::State& state, const char* unit, std::size_t items_per_iteration, double bar) {
  const double items = static_cast<double>(items_per_iteration) * static_cast<double>(state.iterations());
  state.counters[unit] = benchmark::Counter(items, benchmark::Counter::kIsRate);
  state.counters["bar"] = bar;
  state.counters["times_bar"] = benchmark::Counter(items / bar, benchmark::Counter::kIsRate);
}

}  // namespace k3sim::bench
