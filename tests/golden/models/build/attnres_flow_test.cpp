// Block-row traffic of AttnRes between stages: published counts, and the payload of K3's boundaries.
// Source: k3-facts 2.5; peers section 5 (224 and 896 MiB at the first and last boundary of PP8).
#include <doctest/doctest.h>

#include <cmath>

#include "models/build/attnres_flow.h"
#include "models/build/machine_loader.h"
#include "models/build/step_graph.h"
#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"
#include "sim/graph/longest_path.h"

using namespace k3sim;

namespace {

std::vector<int> looped_ranks(int p, int v) {
  std::vector<int> out;
  for (int c = 0; c < p * v; ++c) out.push_back(c % p);
  return out;
}

// Evenly cut layers: chunk boundaries at round-to-nearest multiples.
std::vector<std::int64_t> rows_of_even_cut(int layers, int chunks, int block) {
  std::vector<std::int64_t> out;
  for (int c = 1; c <= chunks; ++c) out.push_back(attnres_bank((2 * layers * c + chunks) / (2 * chunks), block));
  return out;
}

constexpr double kRowGb = 8192.0 * 7168 * 2 / 1e9;

}  // namespace

TEST_CASE("attnres: one row per chunk crosses P(P-1)(2V-1)/2 boundaries when rows are cached") {
  for (int p : {2, 3, 8, 16})
    for (int v : {1, 2, 4}) {
      std::vector<std::int64_t> rows;
      for (int c = 1; c <= p * v; ++c) rows.push_back(c);
      CAPTURE(p);
      CAPTURE(v);
      const int chunks = p * v;
      CHECK(attnres_rows(rows, looped_ranks(p, v), AttnresPipeline::cached).total_sent() ==
            p * (p - 1) * (2 * v - 1) / 2);
      CHECK(attnres_rows(rows, looped_ranks(p, v), AttnresPipeline::naive).total_sent() == chunks * (chunks - 1) / 2);
    }
}

TEST_CASE("attnres: the four published rows of K3, per 8192-token micro-batch") {
  struct Row {
    int p, v;
    double naive, exact, whole_naive, whole_cached;
  };
  for (const Row& r : {Row{8, 1, 3.29, 3.29, 3.29, 3.29}, Row{8, 2, 7.05, 4.93, 7.52, 5.17},
                       Row{8, 4, 14.56, 5.75, 15.85, 5.99}, Row{16, 2, 14.56, 10.57, 15.85, 11.16}}) {
    CAPTURE(r.p);
    CAPTURE(r.v);
    std::vector<std::int64_t> one_each;
    for (int c = 1; c <= r.p * r.v; ++c) one_each.push_back(c);
    const double share = 8.0 / (r.p * r.v) * kRowGb;
    const auto sum = [&](const std::vector<std::int64_t>& rows, AttnresPipeline mode) {
      return static_cast<double>(attnres_rows(rows, looped_ranks(r.p, r.v), mode).total_sent());
    };
    CHECK(std::abs(sum(one_each, AttnresPipeline::naive) * share - r.naive) < 0.006);
    CHECK(std::abs(sum(one_each, AttnresPipeline::cached) * share - r.exact) < 0.006);
    const std::vector<std::int64_t> whole = rows_of_even_cut(93, r.p * r.v, 12);
    CHECK(std::abs(sum(whole, AttnresPipeline::naive) * kRowGb - r.whole_naive) < 0.006);
    CHECK(std::abs(sum(whole, AttnresPipeline::cached) * kRowGb - r.whole_cached) < 0.006);
  }
}

TEST_CASE("attnres: PP8 sends 224 MiB over its first boundary and 896 MiB over its last, naive or cached") {
  for (const char* mode : {"attnres.pipeline=naive", "attnres.pipeline=cached"}) {
    const Scenario s =
        load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"),
                      {"parallel.pp=8", "parallel.vpp=1", "parallel.stage_layers=[12,12,12,12,12,12,12,9]", mode});
    const StepPlan plan = make_step_plan(s, load_machine(s));
    const StageBoundaries b = stage_boundaries(plan);
    CHECK(b.payload.front() == Bytes::mib(224));
    CHECK(b.payload[6] == Bytes::mib(896));
    // (1 + K) S B H 2 at every boundary, K stored rows.
    for (std::size_t c = 0; c < 7; ++c)
      CHECK(b.payload[c] == Bytes((2 + static_cast<std::int64_t>(c)) * 8192 * 7168 * 2));
    CHECK(b.held_rows.front() == Bytes(0));
    CHECK(b.held_rows.back() == Bytes::mib(7 * 112));
  }
}

TEST_CASE("attnres: stages that are not aligned with blocks carry 4 and 7 hidden tensors behind layers 31 and 62") {
  CHECK(1 + attnres_bank(31, 12) == 4);
  CHECK(1 + attnres_bank(62, 12) == 7);
  // Whatever the cut, a micro-batch's payload over one boundary grows by a row per block in front of it.
  for (std::int64_t layers = 1; layers < 93; ++layers) CHECK(attnres_bank(layers, 12) == (layers - 1) / 12 + 1);
}

TEST_CASE("attnres: saved mixes cost memory, checkpointed ones a mix in backward") {
  Bytes kept[2];
  Time backward[2];
  for (int saved : {0, 1}) {
    const Scenario s = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"),
                                     {saved ? "attnres.mixes=saved" : "attnres.mixes=checkpointed",
                                      "activation.policy=keep_all", "activation.recompute=[]"});
    const Machine m = load_machine(s);
    const StepPlan plan = make_step_plan(s, m);
    kept[saved] = plan.chunks[5].parts.front().timed->saved;
    backward[saved] = plan.chunks[5].parts.front().timed->backward.summary.elapsed;
  }
  CHECK(kept[1] == kept[0] + 2 * Bytes(8192 * 7168 * 2));  // the inputs of two norms
  CHECK(backward[1] < backward[0]);
}

TEST_CASE("attnres: cached rows shrink traffic and what a rank holds of a micro-batch, never grow them") {
  StageBoundaries by_mode[2];
  for (int naive : {0, 1}) {
    const Scenario s = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"),
                                     {naive ? "attnres.pipeline=naive" : "attnres.pipeline=cached"});
    by_mode[naive] = stage_boundaries(make_step_plan(s, load_machine(s)));
  }
  Bytes sent[2], held[2];
  for (int naive : {0, 1})
    for (std::size_t i = 0; i < by_mode[naive].payload.size(); ++i) {
      sent[naive] += by_mode[naive].payload[i];
      held[naive] += by_mode[naive].held_rows[i];
      CHECK(by_mode[0].payload[i] <= by_mode[1].payload[i]);
    }
  CHECK(sent[0] < sent[1]);
  CHECK(held[0] < held[1]);
}

TEST_CASE("attnres: residuals over blocks cost less than 4 % of K3's step with pipeline parallelism") {
  const Scenario with = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"), {});
  Scenario without = with;
  without.model.attnres_block = 0;
  const Machine m = load_machine(with);
  const auto step_time = [&](const Scenario& s) {
    const StepPlan plan = make_step_plan(s, m);
    const StepGraph g = build_step_graph(plan, m, {});
    return longest_path(g.built.graph, g.built.durations).makespan;
  };
  const Time a = step_time(with), b = step_time(without);
  MESSAGE("AttnRes overhead: " << 100.0 * (a / b - 1.0) << " %");
  CHECK(a > b);
  CHECK(a / b < 1.04);
}
