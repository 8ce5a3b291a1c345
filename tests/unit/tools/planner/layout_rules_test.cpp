// The fast rules agree with the scenario checks: what they let through is never refused for its layout, and what they
// refuse is refused by the checks as well (or is the planner's own rule about nodes).
#include <doctest/doctest.h>

#include "models/config/space.h"
#include "sim/base/error.h"
#include "tools/planner/evaluate.h"
#include "tools/planner/layout_rules.h"

using namespace k3sim;

namespace {

Reason reason_of(const SearchSpace& space, std::int64_t i) {
  Scenario s = space.base();
  const std::vector<int> choice = space.choice(i);
  for (std::size_t a = 0; a < choice.size(); ++a) space.apply(a, choice[a], s);
  Layout layout;
  return LayoutRules(s.model).check(s, layout, true);
}

bool checks_refuse(const SearchSpace& space, std::int64_t i, MachineStore& machines) {
  try {
    make_step_plan(space.scenario(i), machines.get(space.base()));
    return false;
  } catch (const ConfigError&) {
    return true;
  }
}

}  // namespace

TEST_CASE("layout_rules: the fast rules refuse exactly what the scenario checks and the schedules refuse") {
  MachineStore machines;
  const char* texts[] = {
      "model: qwen3_30b_a3b\ncluster: {gpu: h100_sxm, nodes: 2}\n"
      "parallel: {tp: [1, 2, 3, 8, 16], pp: [1, 2, 4, 16], vpp: [1, 2, 3], ep: [1, 8, 24, 32]}\n"
      "batch: {sequence: 4096, micro_batch: [1, 3], global_sequences: 48}\n",
      "model: llama3_8b\ncluster: {gpu: h100_sxm, nodes: 2}\n"
      "parallel: {tp: [1, 4], pp: [2, 4], vpp: [1, 2], cp: [1, 2, 3]}\nbatch: {sequence: 8192, global_sequences: 32}\n"
      "schedule: {name: [gpipe, 1f1b, interleaved, zb_h1, zb_v, hanayo, dualpipe, dualpipe_v, k3, v_min, bpipe]}\n"};
  std::int64_t accepted = 0, all = 0;
  for (const char* text : texts) {
    const SearchSpace space = SearchSpace::parse(text);
    for (std::int64_t i = 0; i < space.size(); ++i, ++all) {
      const Reason r = reason_of(space, i);
      const bool refused = checks_refuse(space, i, machines);
      if ((r == Reason::ok) == refused)
        FAIL_CHECK("configuration " << i << ": rules say " << to_string(r) << "\n" << space.scenario_text(i));
      accepted += r == Reason::ok;
    }
  }
  CHECK(accepted > 20);
  CHECK(accepted < all / 2);
}

TEST_CASE("layout_rules: tensor parallelism stays in the node unless asked") {
  const SearchSpace space = SearchSpace::parse(
      "model: llama3_8b\ncluster: {nodes: 2}\nparallel: {tp: 16}\n"
      "batch: {global_sequences: 8}\n");
  Layout layout;
  CHECK(LayoutRules(space.base().model).check(space.base(), layout) == Reason::node);
  CHECK(LayoutRules(space.base().model).check(space.base(), layout, true) != Reason::node);
}
