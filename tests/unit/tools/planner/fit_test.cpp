// The smallest cluster: against every layout on every number of nodes, and against the published K3 memory results.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/config/scenario_loader.h"
#include "tools/planner/fit.h"

using namespace k3sim;

namespace {

FitOptions quick() {
  FitOptions o;
  o.evaluate.allow_assumed = true;
  return o;
}

// Fits as `run` says, with the batch of the search.
bool fits(const SearchSpace& space, std::int64_t index, int nodes, MachineStore& machines) {
  Scenario s = quick_scenario(space, index);
  s.cluster.nodes = nodes;
  s.parallel.dp = 0;
  set_fit_batch(s);
  Layout layout;
  if (nodes % node_step(s) != 0 || LayoutRules(s.model).check(s, layout) != Reason::ok) return false;
  StepOptions step;
  step.allow_assumed = true;
  return predict_step(s, machines.get(s), step).summary.fits;
}

}  // namespace

TEST_CASE("fit: no smaller cluster fits in any layout, by simulating all of them") {
  const SearchSpace space = SearchSpace::parse(
      "model: qwen3_30b_a3b\ncluster: {gpu: h100_sxm, nodes: 1, memory_override: 36 GiB}\n"
      "parallel: {tp: [1, 2], pp: [1, 2, 3], ep: [4, 8]}\n"
      "batch: {sequence: 4096, micro_batch: 1, global_sequences: 64}\n"
      "optimizer: {name: adamw, zero: 1}\n"
      "variants:\n  - {activation.policy: none}\n  - {activation.policy: full}\n  - {activation.offload: true}\n");
  MachineStore machines;
  const FitAnswer a = smallest_fit(space, machines, quick()).front();
  REQUIRE(a.nodes > 1);
  CHECK(fits(space, a.index, a.nodes, machines));
  for (int nodes = 1; nodes < a.nodes; ++nodes)
    for (std::int64_t i = 0; i < space.size(); ++i) CHECK_FALSE(fits(space, i, nodes, machines));
  for (const RankMemory& m : a.memory) CHECK(m.reserved + m.outside <= a.capacity);
}

TEST_CASE("fit: a knob's nodes suffice and its price is for the binding term first") {
  const SearchSpace space = SearchSpace::parse(
      "model: llama3_70b\ncluster: {gpu: h100_sxm, nodes: 1}\nparallel: {tp: 8, pp: [1, 2]}\n"
      "batch: {sequence: 8192, micro_batch: 1, global_sequences: 64}\noptimizer: {name: adamw, zero: 1}\n");
  MachineStore machines;
  const FitAnswer a = smallest_fit(space, machines, quick()).front();
  REQUIRE(a.nodes > 0);
  REQUIRE(!a.knobs.empty());
  const KnobEffect& best = a.knobs.front();
  CHECK(best.freed_binding_gib > 0);
  CHECK(best.freed_gib > 0);
  CHECK(std::any_of(a.knobs.begin(), a.knobs.end(), [&](const KnobEffect& k) { return k.nodes < a.nodes; }));
  for (std::size_t i = 1; i < a.knobs.size(); ++i)
    if (a.knobs[i].freed_binding_gib > 0) CHECK(a.knobs[i].step_change_pct >= best.step_change_pct);
}

TEST_CASE("fit: Kimi K3 on 288 GB GPUs needs 28 nodes at PP8 x EP28, 228.9 GiB on a middle stage (ROCm/Megatron-LM)") {
  const SearchSpace space = SearchSpace::load("k3_memory_288gb");
  MachineStore machines;
  FitOptions options = quick();
  options.knobs = false;
  const FitAnswer a = smallest_fit(space, machines, options).front();
  CHECK(a.nodes == 28);
  CHECK(a.scenario.parallel.pp == 8);
  CHECK(a.scenario.parallel.ep == 28);
  REQUIRE(a.memory.size() == 8);
  // The source composes middle stages of twelve layers; the last one has nine and the head.
  for (std::size_t stage = 0; stage < 7; ++stage) {
    const double gib = (a.memory[stage].reserved + a.memory[stage].outside).gibibytes();
    CHECK(gib == doctest::Approx(228.9).epsilon(0.05));
  }
}

TEST_CASE("fit: Kimi K3 under AutoModel on 256 GB200 uses about 129 GiB per GPU (AutoModel pull request 3420)") {
  const Scenario s = load_scenario("k3_memory_gb200", {});
  MachineStore machines;
  StepOptions step;
  step.allow_assumed = true;
  const StepSummary summary = predict_step(s, machines.get(s), step).summary;
  CHECK(summary.peak_reserved.gibibytes() == doctest::Approx(129).epsilon(0.10));
  CHECK(summary.fits);
  // The same job was sent to 256 H100 and died in its first backward pass.
  const Scenario h100 =
      load_scenario("k3_memory_gb200", {"cluster={gpu: h100_sxm, nodes: 32, node: hgx8, fabric: rail_fat_tree_400g}"});
  CHECK_FALSE(predict_step(h100, machines.get(h100), step).summary.fits);
}
