// Pipeline schedules: generating, checking and timing. Bars (issue 5): named schedules at 32 ranks x 256 micro-batches
// 0.1 s, the automatic one 5 s, generating + checking + timing PP64 x 512 0.5 s.
#include <benchmark/benchmark.h>

#include "models/schedule/lint.h"
#include "models/schedule/registry.h"
#include "models/schedule/timeline.h"

namespace {

using namespace k3sim;

void generate_32x256(benchmark::State& state, const char* name, int chunks) {
  ScheduleSpec spec{.name = name, .ranks = 32, .chunks = chunks, .microbatches = 256, .memory_limit = 32};
  spec.times = {Time::us(10), Time::us(11), Time::us(8), Time::us(1)};
  for (auto _ : state) benchmark::DoNotOptimize(make_schedule(spec));
  state.counters["bar_s"] = std::string(name) == "automatic" ? 5.0 : 0.1;
}
BENCHMARK_CAPTURE(generate_32x256, gpipe, "gpipe", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, one_f_one_b, "1f1b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, interleaved, "interleaved", 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, looped_bfs, "looped_bfs", 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, zb_h1, "zb_h1", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, zb_h2, "zb_h2", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, zb_v, "zb_v", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, v_half, "v_half", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, v_min, "v_min", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, dualpipe, "dualpipe", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, dualpipe_v, "dualpipe_v", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, bpipe, "bpipe", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, hanayo, "hanayo", 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, seq1f1b, "seq1f1b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, k3, "k3", 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, automatic_1, "automatic", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_32x256, automatic_2, "automatic", 2)->Unit(benchmark::kMillisecond);

void generate_check_time_64x512(benchmark::State& state, const char* name, int chunks) {
  const ScheduleSpec spec{.name = name, .ranks = 64, .chunks = chunks, .microbatches = 512};
  for (auto _ : state) {
    const Schedule s = make_schedule(spec);
    benchmark::DoNotOptimize(lint_schedule(s).valid);
    benchmark::DoNotOptimize(time_schedule(s, {.stages = {StageTimes{}}}).makespan);
  }
  state.counters["bar_s"] = 0.5;
}
BENCHMARK_CAPTURE(generate_check_time_64x512, one_f_one_b, "1f1b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_check_time_64x512, k3, "k3", 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_check_time_64x512, hanayo, "hanayo", 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_check_time_64x512, v_min, "v_min", 1)->Unit(benchmark::kMillisecond);

}  // namespace
