// One whole step with all communication as flows, from the scenario on: plan, graph, network, breakdown, memory.
// Bar: K3 on 4,096 GPUs under 3 s on one core (issue on the network).
#include <benchmark/benchmark.h>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "tests/bench/bench_report.h"

namespace k3sim::bench {
namespace {

void k3_step_4096_gpus(benchmark::State& state) {
  const Scenario s = load_scenario("k3_2048_h800", {"cluster.nodes=512", "batch.global_tokens=134217728"});
  const Machine m = load_machine(s);
  StepOptions o;
  o.graph.detail = StepGraphOptions::Detail::kernel;
  StepNetworkReport network;
  for (auto _ : state) network = predict_step(s, m, o).summary.network;
  report_rate(state, "steps/s", 1, 1.0 / 3.0);
  state.counters["communications"] = static_cast<double>(network.communications);
  state.counters["completions"] = static_cast<double>(network.completions);
}
BENCHMARK(k3_step_4096_gpus)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace k3sim::bench
