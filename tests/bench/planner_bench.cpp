// The steps of the search beside their bars (engine-design section 17), on one thread.
//   bounds: stages 1 to 3 of the planner (layout rules, least memory, least time) for every configuration of the K3
//           space; the cost tables that the configurations share are built before
//   coarse: the step of one configuration of about 4,000 tasks: its plan, costs of every action, durations, longest
//   path;
//           cached: the task graph of its schedule is there; rebuild: schedule and graph are made anew
#include <benchmark/benchmark.h>

#include "models/build/machine_loader.h"
#include "models/config/data_files.h"
#include "tests/bench/bench_report.h"
#include "tools/planner/candidates.h"
#include "tools/planner/coarse.h"

namespace k3sim::bench {
namespace {

void planner_bounds(benchmark::State& state) {
  const SearchSpace space = SearchSpace::load("k3_2048_h800", {"variants=[{activation.policy: full}]"});
  MachineStore machines;
  Reasons reasons(static_cast<std::size_t>(space.size()), Reason::ok);
  CostTables tables(space);
  const std::vector<Candidate> all = [&] {
    std::vector<Candidate> c = generate_candidates(space, tables, false, reasons);
    tables.build(c, machines, {1, true}, reasons);
    return c;
  }();
  for (auto _ : state) {
    std::vector<Candidate> candidates = generate_candidates(space, tables, false, reasons);
    candidates = all;  // the same ones, with their tables
    bound_candidates(space, tables, Objective::mfu, 1, candidates, reasons);
    benchmark::DoNotOptimize(candidates.data());
  }
  report_rate(state, "configs/s", static_cast<std::size_t>(space.size()), 200e3);
  state.counters["configs"] = static_cast<double>(space.size());
}
BENCHMARK(planner_bounds)->Unit(benchmark::kMillisecond);

// GPT-3 175B on 16 stages, 64 micro-batches: 2 x 16 x 64 actions and 2 x 15 x 64 transfers.
struct CoarseCase {
  SearchSpace space = SearchSpace::parse(
      "model: gpt3_175b\ncluster: {gpu: h100_sxm, nodes: 128}\nparallel: {tp: 8, pp: 16, vpp: 1}\n"
      "batch: {sequence: 2048, micro_batch: 1, global_sequences: 512}\nschedule: {name: 1f1b}\n"
      "activation: {policy: full}\n");
  MachineStore machines;
  CostTables tables{space};
  std::vector<Candidate> candidates;
  ScheduleStore schedules;
  Scenario scenario = space.base();
  CoarseCase() {
    Reasons reasons(1, Reason::ok);
    candidates = generate_candidates(space, tables, false, reasons);
    tables.build(candidates, machines, {1, true}, reasons);
  }
  const Machine& machine() const { return *tables.table(candidates[0].table).machine; }
  StepPlan plan() {
    const Candidate& c = candidates[0];
    StepReuse reuse;
    reuse.layers = tables.table(c.table).layers;
    reuse.chunks = c.chunks->chunks;
    reuse.schedule = schedules.get(scenario, c.layout).brief;
    return make_step_plan(scenario, machine(), reuse);
  }
};

void planner_coarse_cached(benchmark::State& state) {
  CoarseCase c;
  const SharedSchedule& shared = c.schedules.get(c.scenario, c.candidates[0].layout);
  for (auto _ : state) {
    const StepPlan plan = c.plan();
    benchmark::DoNotOptimize(shared.step(coarse_costs(plan, c.machine())));
  }
  report_rate(state, "configs/s", 1, 10e3);
  state.counters["tasks"] = static_cast<double>(shared.topology->tasks());
}
BENCHMARK(planner_coarse_cached)->Unit(benchmark::kMicrosecond);

void planner_coarse_rebuild(benchmark::State& state) {
  CoarseCase c;
  std::size_t tasks = 0;
  for (auto _ : state) {
    ScheduleStore fresh;
    const SharedSchedule& shared = fresh.get(c.scenario, c.candidates[0].layout);
    const StepPlan plan = c.plan();
    benchmark::DoNotOptimize(shared.step(coarse_costs(plan, c.machine())));
    tasks = shared.topology->tasks();
  }
  report_rate(state, "configs/s", 1, 3e3);
  state.counters["tasks"] = static_cast<double>(tasks);
}
BENCHMARK(planner_coarse_rebuild)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace k3sim::bench
