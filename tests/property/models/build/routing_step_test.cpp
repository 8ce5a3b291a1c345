// Skewed routing reaches the step: draws per layer and micro-batch, expert-parallel ranks with their own rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "models/config/yaml_reader.h"

using namespace k3sim;

namespace {

Scenario scenario(const std::string& moe, int pp = 1, int layers = 4) {
  const std::string text =
      "model: {name: small_moe, source: test, hidden: 4096, vocab: 32000, max_positions: 4096, norm: rms_norm,\n"
      "  attention: {mha: {kind: mha, heads: 32, kv_heads: 8, qk_dim: 128, v_dim: 128}},\n"
      "  ffn: {moe: {activation: swiglu, experts: 64, topk: 4, expert_intermediate: 2048}},\n"
      "  layers: {count: " +
      std::to_string(layers) + ", attention: mha, ffn: moe}}\n" +
      "cluster: {gpu: h100_sxm, nodes: " + std::to_string(pp) + "}\n" + "parallel: {pp: " + std::to_string(pp) +
      ", ep: 8}\nbatch: {sequence: 4096, micro_batch: 1, global_sequences: " + std::to_string(8 * 6) + "}\n" +
      "moe: " + moe + "\n";
  YamlDocument document = YamlDocument::parse(text, "test.yaml");
  return read_scenario(document);
}

StepPrediction predict(const Scenario& s, std::int64_t straggler_tasks) {
  StepOptions o;
  o.graph.detail = StepGraphOptions::Detail::kernel;
  o.graph.straggler_tasks = straggler_tasks;
  o.memory.emulated_ranks = 0;
  return predict_step(s, load_machine(s), o);
}

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

TEST_CASE("routing in the step: unfolded ranks and the slowest rank of every draw give the same step") {
  for (const char* dispatcher : {"deepep", "alltoall", "copy_free", "eplb", "moonep_tolerance"})
    for (const int pp : {1, 2}) {
      CAPTURE(dispatcher);
      CAPTURE(pp);
      const Scenario s = scenario(
          "{dispatcher: " + std::string(dispatcher) + ", routing: {skew_sigma: 0.5, correlation: rank, seed: 3}}", pp);
      const StepPrediction slowest = predict(s, 0), unfolded = predict(s, 1'000'000);
      CHECK(holds(slowest.summary.folded, "ep"));
      CHECK_FALSE(holds(unfolded.summary.folded, "ep"));
      CHECK(unfolded.summary.step.seconds() == doctest::Approx(slowest.summary.step.seconds()).epsilon(0.005));
      // A rank that is not the busiest waits for those that are.
      CHECK(unfolded.summary.mean.wait > slowest.summary.mean.wait);
    }
}

TEST_CASE("routing in the step: MoonEP's ranks have equal rows and stay one; balanced routing has no draws") {
  const StepPrediction moonep = predict(scenario("{dispatcher: moonep, routing: {skew_sigma: 0.5}}"), 1'000'000);
  CHECK(holds(moonep.summary.folded, "ep"));
  REQUIRE(moonep.moe.draws);
  CHECK_FALSE(moonep.moe.draws->stragglers());
  const StepPrediction balanced = predict(scenario("{dispatcher: deepep}"), 1'000'000);
  CHECK(holds(balanced.summary.folded, "ep"));
  CHECK_FALSE(balanced.moe.draws);
}

TEST_CASE("routing in the step: layers and micro-batches have loads of their own, and the step is the sum over them") {
  const Scenario s = scenario("{dispatcher: deepep, routing: {skew_sigma: 0.6}}");
  const StepPrediction p = predict(s, 0);
  const MoeDraws& draws = *p.moe.draws;
  CHECK(draws.layers().size() == 4);
  CHECK(draws.micro_batches() == 16);
  CHECK(draws.at(0, 0).expert_rows != draws.at(0, 1).expert_rows);
  CHECK(draws.at(0, 0).expert_rows != draws.at(1, 0).expert_rows);
  CHECK(draws.at(2, 17).expert_rows == draws.at(2, 1).expert_rows);  // repeats after 16
  double least = 1e9, most = 0;
  for (const MoeDraw& d : draws.draws) {
    least = std::min(least, d.largest_ratio());
    most = std::max(most, d.largest_ratio());
  }
  CHECK(least < p.moe.row_ratio);
  CHECK(most > p.moe.row_ratio);
  const double balanced = predict(scenario("{dispatcher: deepep}"), 0).summary.step.seconds();
  CHECK(p.summary.step.seconds() > 1.03 * balanced);
}

TEST_CASE("routing in the step: bounds of a search stay below every instance") {
  const Scenario s = scenario("{dispatcher: alltoall, routing: {skew_sigma: 0.8}}");
  const Machine machine = load_machine(s);
  const StepPlan plan = make_step_plan(s, machine);
  RoutedPasses routed(*plan.layers, machine, *plan.comm);
  int parts = 0;
  for (const Chunk& c : plan.chunks)
    for (const ChunkPart& part : c.parts) {
      if (!part.timed->moe) continue;
      ++parts;
      REQUIRE(part.timed->least);
      for (int m = 0; m < 6; ++m) {
        const TimedPasses& t = routed.of(part, m, kBusiestRank);
        CHECK(t.forward.summary.elapsed >= part.timed->least->forward.summary.elapsed);
        CHECK(t.backward.summary.elapsed >= part.timed->least->backward.summary.elapsed);
      }
    }
  CHECK(parts == 4);
}

// One micro-batch is in flight: the fullest rank holds its rows of all four layers at once. Kept for every row are at
// least the row itself (4,096 values) and the gate and up products (2 x 2,048); at most also the sorted copy, the
// activation (2,048), the experts' output and the weighted output, with the layer that runs holding gradients of as
// much.
TEST_CASE("routing in the step: a hotter rank needs more memory where shapes follow the routing, not with MoonEP") {
  const auto predicted = [](const char* dispatcher, double sigma) {
    return predict(
        scenario(std::string("{dispatcher: ") + dispatcher +
                 (sigma > 0 ? ", routing: {correlation: rank, skew_sigma: " + std::to_string(sigma) + "}}" : "}")),
        0);
  };
  const auto allocated = [](const StepPrediction& p) { return p.summary.peak_allocated.as_double(); };
  const StepPrediction skewed = predicted("deepep", 0.6), balanced = predicted("deepep", 0);
  const MoeDraws& draws = *skewed.moe.draws;
  double extra = 0;  // rows of the fullest rank and micro-batch over balanced ones, in units of one layer's
  for (int m = 0; m < 6; ++m)
    for (std::size_t rank = 0; rank < 8; ++rank) {
      double sum = 0;
      for (const int layer : draws.layers()) sum += draws.at(layer, m).ranks[rank].row_ratio - 1.0;
      extra = std::max(extra, sum);
    }
  REQUIRE(extra > 1.0);
  const double rows = 4096 * 4 * extra, more = allocated(skewed) - allocated(balanced);
  CAPTURE(more / rows);
  CHECK(more > rows * 2 * (4096 + 2 * 2048));
  CHECK(more < rows * 2 * (4 * 4096 + 3 * 2048) * 2);
  CHECK(allocated(predicted("moonep", 0.6)) < 1.02 * allocated(predicted("moonep", 0)));
}

TEST_CASE("routing in the step: router statistics cost what their all-reduce takes") {
  const StepPrediction none = predict(scenario("{dispatcher: deepep}"), 0),
                       quantile = predict(scenario("{dispatcher: deepep, balancing: quantile}"), 0);
  CHECK(none.router_statistics == Bytes(0));
  CHECK(quantile.router_statistics == Bytes(64 * 1000 * 4));
  const double cost = quantile.summary.step.seconds() - none.summary.step.seconds();
  CHECK(cost > 0.0);
  CHECK(cost <= 4 * quantile.router_statistics_time.seconds() + 1e-9);
}

TEST_CASE("routing in the step: scaling what draws add to balanced loads never makes the step shorter") {
  for (const char* dispatcher : {"deepep", "moonep"}) {
    CAPTURE(dispatcher);
    const Scenario s = scenario("{dispatcher: " + std::string(dispatcher) + ", routing: {skew_sigma: 0.5, seed: 3}}");
    const Scenario even = scenario("{dispatcher: " + std::string(dispatcher) + "}");
    Machine machine = load_machine(s);
    StepOptions o;
    o.graph.detail = StepGraphOptions::Detail::kernel;
    o.memory.emulated_ranks = 0;
    const auto step = [&](const Scenario& of, double imbalance) {
      machine.imbalance = imbalance;
      return predict_step(of, machine, o).summary.step.seconds();
    };
    double last = 0;
    for (const double factor : {0.0, 0.5, 1.0, 1.1, 2.0}) {
      CAPTURE(factor);
      CHECK(step(s, factor) > last * (1 - 1e-6));
      last = step(s, factor);
    }
    CHECK(last > step(s, 0.0) * 1.01);
    // Without excess only the plan's fixed time and the shapes of the groups are left.
    CHECK(step(s, 0.0) == doctest::Approx(step(even, 1.0)).epsilon(0.05));
  }
}
