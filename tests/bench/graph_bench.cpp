// Building against evaluating, and both evaluators, on the graphs of engine-design section 1.
#include "sim/engine/engine.h"
#include "sim/graph/critical_path.h"
#include "sim/graph/longest_path.h"
#include "tests/bench/bench_graphs.h"
#include "tests/bench/bench_report.h"

namespace k3sim::bench {
namespace {

constexpr double kMillion = 1e6;
constexpr std::size_t kSmall = 20'000;  // up to here the bar for small graphs holds

PipelineSize size_of(const benchmark::State& state) {
  return {.ranks = static_cast<std::uint32_t>(state.range(0)),
          .micro_batches = static_cast<std::uint32_t>(state.range(1)),
          .kernels = static_cast<std::uint32_t>(state.range(2))};
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"P", "M", "L"})->Unit(benchmark::kMicrosecond);
  b->Args({16, 64, 1})->Args({16, 64, 8})->Args({16, 256, 60})->Args({64, 512, 60});
}

void build(benchmark::State& state) {
  std::size_t tasks = 0;
  for (auto _ : state) {
    const BuiltGraph g = one_f_one_b(size_of(state));
    benchmark::DoNotOptimize(tasks = g.graph.task_count());
  }
  report_rate(state, "tasks/s", tasks, 20 * kMillion);  // so that 500 k tasks are built and evaluated 20 times a second
}
BENCHMARK(build)->Apply(sizes);

void longest_path_cached(benchmark::State& state) {
  const BuiltGraph g = one_f_one_b(size_of(state));
  WalkState walk;
  TaskTimes times;
  for (auto _ : state) {
    longest_path(g.graph, g.durations, walk, times);
    benchmark::DoNotOptimize(times.makespan);
  }
  const std::size_t tasks = g.graph.task_count();
  report_rate(state, "tasks/s", tasks, (tasks <= kSmall ? 100 : 60) * kMillion);
}
BENCHMARK(longest_path_cached)->Apply(sizes);

void discrete_events(benchmark::State& state) {
  const BuiltGraph g = one_f_one_b(size_of(state));
  EngineStats stats;
  for (auto _ : state) {
    const EngineResult out = simulate(g.graph, g.durations);
    stats = out.stats;
    benchmark::DoNotOptimize(out.times.makespan);
  }
  report_rate(state, "events/s", stats.events, (g.graph.task_count() <= kSmall ? 30 : 15) * kMillion);
  state.counters["pending"] = static_cast<double>(stats.max_pending);
}
BENCHMARK(discrete_events)->Apply(sizes)->Args({1000, 32, 1});

// Streams that hardly wait for each other: as many events pending as there are streams.
void discrete_events_wide(benchmark::State& state) {
  const auto streams = static_cast<std::uint32_t>(state.range(0)), length = static_cast<std::uint32_t>(state.range(1));
  const BuiltGraph g = wide_graph(streams, length);
  EngineStats stats;
  for (auto _ : state) stats = simulate(g.graph, g.durations).stats;
  report_rate(state, "events/s", stats.events, 30 * kMillion);
  state.counters["pending"] = static_cast<double>(stats.max_pending);
}
BENCHMARK(discrete_events_wide)
    ->ArgNames({"streams", "length"})
    ->Args({64, 300})
    ->Args({1000, 20})
    ->Unit(benchmark::kMicrosecond);

// All tasks share their device with a communication stream and slow down while it is busy.
void discrete_events_shared(benchmark::State& state) {
  const BuiltGraph g = overlapped_graph(static_cast<std::uint32_t>(state.range(0)), 300);
  SlowdownMatrix m = no_slowdown();
  m[1][2] = 1.2;
  m[2][1] = 1.1;
  const SlowdownTable table(m);
  EngineStats stats;
  for (auto _ : state) stats = simulate(g.graph, g.durations, {.slowdown = &table}).stats;
  report_rate(state, "events/s", stats.events, 5 * kMillion);
  state.counters["rate_changes"] = static_cast<double>(stats.rate_changes);
}
BENCHMARK(discrete_events_shared)->ArgNames({"devices"})->Args({16})->Args({1000})->Unit(benchmark::kMicrosecond);

void critical_path_and_slack(benchmark::State& state) {
  const BuiltGraph g = one_f_one_b(size_of(state));
  const TaskTimes times = longest_path(g.graph, g.durations);
  for (auto _ : state) benchmark::DoNotOptimize(critical_path(g.graph, times).tasks.size());
  report_rate(state, "tasks/s", g.graph.task_count(), 10 * kMillion);
}
BENCHMARK(critical_path_and_slack)->Apply(sizes);

// One refill of durations and one evaluation of a cached topology: what a sweep pays per configuration.
void refill_and_evaluate(benchmark::State& state) {
  BuiltGraph g = one_f_one_b(size_of(state));
  WalkState walk;
  TaskTimes times;
  std::int64_t factor = 0;
  for (auto _ : state) {
    ++factor;
    for (std::size_t t = 0; t < g.durations.size(); ++t) {
      g.durations[t] = Time::ns(10 + factor % 7) * (g.graph.kind(TaskId(t)) + 1);
    }
    longest_path(g.graph, g.durations, walk, times);
    benchmark::DoNotOptimize(times.makespan);
  }
  report_rate(state, "configs/s", 1, g.graph.task_count() <= kSmall ? 10'000 : 40);
}
BENCHMARK(refill_and_evaluate)
    ->ArgNames({"P", "M", "L"})
    ->Args({16, 64, 1})
    ->Args({16, 256, 60})
    ->Unit(benchmark::kMicrosecond);

void build_and_evaluate(benchmark::State& state) {
  for (auto _ : state) {
    const BuiltGraph g = one_f_one_b(size_of(state));
    benchmark::DoNotOptimize(longest_path(g.graph, g.durations).makespan);
  }
  report_rate(state, "configs/s", 1, state.range(2) == 1 ? 3'000 : 20);
}
BENCHMARK(build_and_evaluate)
    ->ArgNames({"P", "M", "L"})
    ->Args({16, 64, 1})
    ->Args({16, 256, 60})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace k3sim::bench
