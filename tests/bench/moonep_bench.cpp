// Planning time of MoonEP at K3's size: E = 896, R = 64, S K = 131,072 rows per rank; the bar is 1 ms of CPU time.
#include <benchmark/benchmark.h>

#include "models/moe/moonep_planner.h"
#include "models/moe/moonep_rows.h"
#include "models/moe/routing.h"

namespace {

using namespace k3sim;

RoutingSpec skewed(bool correlated) {
  RoutingSpec spec;
  spec.kind = RoutingKind::kLogNormal;
  spec.micro_batch_sigma = correlated ? 0.5 : 1.0;
  spec.correlated_with_rank = correlated;
  return spec;
}

void plan_without_rows(benchmark::State& state) {
  const RoutingShape shape{.ranks = 64, .experts = 896, .topk = 16, .tokens_per_rank = 8192};
  const ExpertCounts counts = draw_counts(skewed(state.range(0) != 0), shape, {});
  const PlannerOptions options{.capacity_rows = 131'072};
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan_moonep(counts, options));
  }
}
BENCHMARK(plan_without_rows)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void address_one_rank(benchmark::State& state) {
  const RoutingShape shape{.ranks = 64, .experts = 896, .topk = 16, .tokens_per_rank = 8192};
  const ExpertCounts counts = draw_counts_exact(skewed(false), shape, {});
  const MoonepPlan plan = plan_moonep(counts);
  const std::vector<std::int32_t> ids = draw_expert_ids(skewed(false), shape, {}, 63);
  for (auto _ : state) {
    benchmark::DoNotOptimize(address_rows(plan, counts, 63, ids, shape.topk));
  }
}
BENCHMARK(address_one_rank)->Unit(benchmark::kMicrosecond);

void draw_a_micro_batch(benchmark::State& state) {
  const RoutingShape shape{.ranks = 64, .experts = 896, .topk = 16, .tokens_per_rank = 8192};
  for (auto _ : state) {
    benchmark::DoNotOptimize(state.range(0) != 0 ? draw_counts_exact(skewed(false), shape, {})
                                                 : draw_counts(skewed(false), shape, {}));
  }
}
BENCHMARK(draw_a_micro_batch)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
