// What `diff` says: parts add up exactly, and a change that is known to act on one thing shows there.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/machine_loader.h"
#include "models/config/space.h"
#include "tools/planner/difference.h"

using namespace k3sim;

namespace {

const char* const kText =
    "model: kimi_linear_48b\ncluster: {gpu: h800_sxm, nodes: 8}\nparallel: {pp: 4, vpp: 2, ep: 16}\n"
    "batch: {sequence: 8192, global_sequences: 256}\nschedule: {name: k3}\nmoe: {dispatcher: moonep}\n"
    "activation: {policy: none}\noptimizer: {name: adamw, zero: 1}\n";

StepPrediction predict(const Scenario& s, const Machine& machine) {
  StepOptions o;
  o.graph.detail = StepGraphOptions::Detail::kernel;
  o.keep_graph = o.allow_assumed = true;
  return predict_step(s, machine, o);
}

StepPrediction predict(const std::vector<std::string>& overrides) {
  const Scenario s = SearchSpace::parse(kText, {}, overrides).scenario(0);
  return predict(s, load_machine(s));
}

double sum(const std::vector<Difference>& list) {
  double all = 0;
  for (const Difference& d : list) all += d.change();
  return all;
}

double change(const std::vector<Difference>& list, const std::string& part) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Difference& d) { return d.part == part; });
  return found == list.end() ? 0.0 : found->change();
}

}  // namespace

TEST_CASE("difference: parts along the critical path, of the mean rank and of memory add up to the change") {
  const StepPrediction base = predict({});
  for (const std::vector<std::string>& set : {std::vector<std::string>{"parallel.vpp=1"},
                                              {"parallel.ep=8"},
                                              {"activation.policy=full"},
                                              {"optimizer.states=cpu"},
                                              {"parallel.pp=2"}}) {
    const StepPrediction other = predict(set);
    const StepDifference d = difference(base, other);
    const Scenario s = SearchSpace::parse(kText, {}, set).scenario(0);
    const MemoryOwners owners = memory_owners(base, load_machine(SearchSpace::parse(kText).scenario(0)));
    const StepDifference by_owner = difference(base, other, owners, memory_owners(other, load_machine(s)));
    INFO(set.front());
    CHECK(sum(d.critical) == doctest::Approx(d.step_after - d.step_before).epsilon(1e-9));
    CHECK(sum(d.time) == doctest::Approx(d.step_after - d.step_before).epsilon(1e-6));
    CHECK(sum(by_owner.memory) == doctest::Approx(sum(d.memory)));
    CHECK(owners.size() > 8);
    CHECK(sum(d.memory) == doctest::Approx((other.summary.peak_reserved - base.summary.peak_reserved).gibibytes()));
  }
}

TEST_CASE("difference: slower kernels show on the stages, slower expert exchange in the all-to-all") {
  const Scenario s = SearchSpace::parse(kText).scenario(0);
  const Machine machine = load_machine(s);
  const StepPrediction base = predict(s, machine);
  Machine slow = machine;
  slow.software.ep_efficiency *= 0.8;
  const StepDifference exchange = difference(base, predict(s, slow));
  REQUIRE(exchange.step_after > exchange.step_before);
  // Which stage is the slowest may change as well, and moves time between the path's stages: they count together.
  const double longer = exchange.step_after - exchange.step_before;
  const double stages = change(exchange.critical, "slowest stage") + change(exchange.critical, "other stages");
  CAPTURE(stages);
  CAPTURE(longer);
  CHECK(change(exchange.critical, "exposed all-to-all (ep)") > 0.5 * longer);
  CHECK(change(exchange.critical, "exposed all-to-all (ep)") > stages);
  Scenario full = s;
  full.activation.policy = "full";
  const StepDifference recompute = difference(base, predict(full, machine));
  CHECK(recompute.critical.front().part == "recompute");
  CHECK(change(recompute.critical, "recompute") >
        change(recompute.critical, "slowest stage") + change(recompute.critical, "other stages"));
  CHECK(recompute.memory.front().part == "kept activations");
}
