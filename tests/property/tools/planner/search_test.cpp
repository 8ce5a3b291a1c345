// The search against the simulation: bounds are never above it, pruning loses nothing, what is reported is what `run`
// gives, and every configuration has one verdict.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/machine_loader.h"
#include "sim/base/error.h"
#include "tools/planner/candidates.h"
#include "tools/planner/coarse.h"
#include "tools/planner/search.h"

using namespace k3sim;

namespace {

// A mixture of experts on two nodes with the schedules, policies and splits that bounds treat differently.
const char* const kMixed =
    "model: qwen3_30b_a3b\ncluster: {gpu: h100_sxm, nodes: 2}\n"
    "parallel: {tp: [1, 2], pp: [1, 2, 4], vpp: [1, 2], ep: [8]}\n"
    "batch: {sequence: 4096, micro_batch: 1, global_sequences: 64}\n"
    "schedule: {name: [1f1b, gpipe, k3, zb_h1, dualpipe_v], split_wgrad: [false, true]}\n"
    "activation: {policy: [none, full, unified, auto]}\noptimizer: {name: adamw, zero: 1}\n";
const char* const kDense =
    "model: llama3_8b\ncluster: {gpu: h100_sxm, nodes: 4}\n"
    "parallel: {tp: [1, 2, 8], pp: [1, 2, 4], cp: [1, 2], vpp: [1, 4]}\n"
    "batch: {sequence: 8192, micro_batch: [1, 2], global_sequences: 64}\n"
    "activation: {policy: [none, selective, full]}\noptimizer: {name: adamw, zero: [1, 2, 3]}\n"
    "overlap: {param_gather: [false, true]}\n";

struct Bounded {
  SearchSpace space;
  MachineStore machines;
  CostTables tables;
  Reasons reasons;
  std::vector<Candidate> candidates;
  explicit Bounded(const char* text) : space(SearchSpace::parse(text)), tables(space) {
    reasons.assign(static_cast<std::size_t>(space.size()), Reason::ok);
    candidates = generate_candidates(space, tables, false, reasons);
    tables.build(candidates, machines, {1, true}, reasons);
    bound_candidates(space, tables, Objective::step_time, 1, candidates, reasons);
  }
  bool consistent(std::int64_t index) const {
    try {
      space.scenario(index);
      return true;
    } catch (const ConfigError&) {
      return false;  // settings without effect
    }
  }
  StepSummary simulate(std::int64_t index) {
    EvaluateOptions options;
    options.allow_assumed = true;
    return evaluate(space.scenario(index), machines, options).prediction.summary;
  }
};

void check_bounds(const char* text, std::size_t every) {
  Bounded b(text);
  REQUIRE(b.candidates.size() > 20);
  double tightest = 0;
  int checked = 0;
  for (std::size_t i = 0; i < b.candidates.size(); i += every) {
    const Candidate& c = b.candidates[i];
    if (!b.consistent(c.index)) continue;
    const StepSummary s = b.simulate(c.index);
    INFO(b.space.scenario_text(c.index));
    ++checked;
    CHECK(c.bound <= s.step.seconds());
    tightest = std::max(tightest, c.bound / s.step.seconds());
    const Scenario q = quick_scenario(b.space, c.index);
    const Bytes memory = least_memory(q, stage_map(q, c.layout), c.layout, c.chunks->costs);
    CHECK(memory <= s.peak_allocated);
  }
  CHECK(checked >= 10);
  CHECK(tightest > 0.7);  // a bound of nothing would pass the rest
  CHECK(tightest <= 1.0);
}

SearchOptions options(bool prune) {
  SearchOptions o;
  o.objective = Objective::step_time;
  o.top = 3;
  o.prune = prune;
  o.evaluate.allow_assumed = true;
  return o;
}

}  // namespace

TEST_CASE("bounds: time and memory never exceed the simulation, over schedules, splits and policies") {
  check_bounds(kMixed, 5);
  check_bounds(kDense, 9);
}

TEST_CASE("bounds: what the memory bound removes does not fit when it is simulated") {
  Bounded b(
      "model: kimi_k3\ncluster: {gpu: h800_sxm, nodes: 32}\n"
      "parallel: {pp: [4, 8], ep: [16, 32]}\nbatch: {sequence: 8192, global_sequences: 1024}\n"
      "schedule: {name: k3}\nmoe: {dispatcher: moonep}\nactivation: {policy: [full, unified]}\n");
  int removed = 0;
  for (std::int64_t i = 0; i < b.space.size(); ++i) {
    if (b.reasons[static_cast<std::size_t>(i)] != Reason::memory_bound) continue;
    ++removed;
    CHECK_FALSE(b.simulate(i).fits);
  }
  CHECK(removed > 0);
}

TEST_CASE("search: pruning gives the same finalists as no pruning, and every configuration has one verdict") {
  const char* text =
      "model: qwen3_30b_a3b\ncluster: {gpu: h100_sxm, nodes: 2}\n"
      "parallel: {tp: [1, 2, 3], pp: [1, 2, 4], vpp: [1, 2], ep: [8, 16]}\n"
      "batch: {sequence: 4096, micro_batch: [1, 2], global_sequences: 64}\n"
      "activation: {policy: [none, selective, full]}\noptimizer: {name: adamw, zero: [1, 2, 3]}\n";
  const SearchSpace space = SearchSpace::parse(text);
  MachineStore machines;
  const SearchResult pruned = search(space, machines, options(true)), all = search(space, machines, options(false));
  REQUIRE(!pruned.ranked.empty());
  REQUIRE(pruned.ranked.size() == all.ranked.size());
  for (std::size_t i = 0; i < all.ranked.size(); ++i) CHECK(pruned.ranked[i].index == all.ranked[i].index);
  CHECK(pruned.evaluated < all.evaluated);
  std::int64_t sum = 0;
  for (std::int64_t n : pruned.counts) sum += n;
  CHECK(sum == space.size());
  const auto searched = std::count_if(pruned.ranked.begin(), pruned.ranked.end(),
                                      [](const Ranked& r) { return r.policy_searched; });  // beside their configuration
  CHECK(pruned.counts[static_cast<std::size_t>(Reason::ok)] + searched ==
        static_cast<std::int64_t>(pruned.ranked.size()));
  CHECK(pruned.counts[static_cast<std::size_t>(Reason::gpus)] == space.size() / 3);  // tp 3
  // The best of all simulated kernel by kernel: nothing that fits is faster.
  for (std::int64_t i = 0; i < space.size(); ++i) {
    if (all.reasons[static_cast<std::size_t>(i)] != Reason::slower) continue;
    EvaluateOptions o;
    o.allow_assumed = true;
    const Evaluation e = evaluate(space.scenario(i), machines, o);
    if (e.reason == Reason::ok)
      CHECK(e.prediction.summary.step >= all.ranked.front().evaluation.prediction.summary.step);
  }
}

TEST_CASE("search: what is reported is what a run of its scenario gives, to the picosecond") {
  const SearchSpace space = SearchSpace::parse(
      "model: kimi_linear_48b\ncluster: {gpu: h800_sxm, nodes: 4}\n"
      "parallel: {tp: 1, pp: [1, 2, 4], ep: [8, 16], partition: [even, balanced]}\n"
      "batch: {sequence: 8192, global_sequences: 64}\nmoe: {dispatcher: moonep, routing: {skew_sigma: 0.3}}\n"
      "schedule: {name: [1f1b, zb_h1]}\nactivation: {policy: [none, unified]}\n");
  MachineStore machines;
  SearchOptions o = options(true);
  o.threads = 2;
  const SearchResult r = search(space, machines, o);
  REQUIRE(r.ranked.size() >= 3);
  for (const Ranked& p : r.ranked) {
    const Scenario s = SearchSpace::parse(p.scenario_text).scenario(0);
    StepOptions step;
    step.allow_assumed = true;
    step.graph.detail = StepGraphOptions::Detail::kernel;
    const StepSummary again = predict_step(s, load_machine(s), step).summary;
    const StepSummary& reported = p.evaluation.prediction.summary;
    CHECK(again.step == reported.step);
    CHECK(again.fingerprint == reported.fingerprint);
    CHECK(again.peak_reserved == reported.peak_reserved);
    // All kernels 5 % off: on both sides of the step, and never by more than 5 %.
    const double seconds = reported.step.seconds();
    CHECK(p.step_low < seconds);
    CHECK(p.step_high > seconds);
    CHECK(p.step_low >= 0.95 * seconds);
    CHECK(p.step_high <= 1.05 * seconds);
  }
}
