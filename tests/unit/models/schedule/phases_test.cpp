#include "models/schedule/phases.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "models/schedule/lint.h"
#include "models/schedule/registry.h"
#include "models/schedule/timeline.h"

using namespace k3sim;

TEST_CASE("offload: activations leave and return in time, and the peak on the rank falls") {
  for (const char* name : {"1f1b", "k3", "zb_v", "dualpipe_v"}) {
    const Schedule s =
        make_schedule({.name = name, .ranks = 6, .chunks = name == std::string("k3") ? 2 : 1, .microbatches = 24});
    CAPTURE(name);
    const Schedule lighter = with_offload(s);
    CHECK_MESSAGE(lint_schedule(lighter).valid, lint_schedule(lighter).text);
    const ScheduleCosts costs{.stages = {StageTimes{}}};
    const Timeline before = time_schedule(s, costs), after = time_schedule(lighter, costs);
    CHECK(after.makespan == before.makespan);
    CHECK(after.ranks[0].peak_activations < before.ranks[0].peak_activations);
  }
}

TEST_CASE("offload: lending to the mirror rank evens 1F1B's activations") {
  const Schedule s =
      with_offload(make_schedule({.name = "1f1b", .ranks = 8, .microbatches = 32}), {.even_ranks = true});
  CHECK(lint_schedule(s).valid);
  const Timeline t = time_schedule(s, {.stages = {StageTimes{}}});
  CHECK(t.ranks[0].peak_activations < 8);
  CHECK(t.ranks[7].peak_activations > 1);
}

TEST_CASE("vision: one encoder forward and backward per micro-batch, on the first stage's rank") {
  const Schedule s = with_vision(make_schedule({.name = "k3", .ranks = 4, .chunks = 2, .microbatches = 8}));
  CHECK(lint_schedule(s).valid);
  for (std::size_t r = 0; r < 4; ++r) {
    auto count = [&](ActionKind kind) {
      return std::count_if(s.actions[r].begin(), s.actions[r].end(), [&](const Action& a) { return a.kind == kind; });
    };
    CHECK(count(ActionKind::kVisionForward) == (r == 0 ? 8 : 0));
    CHECK(count(ActionKind::kVisionBackward) == (r == 0 ? 8 : 0));
  }
  // The encoder of micro-batch 1 runs before the forward of micro-batch 0's successor needs it.
  CHECK(to_string(s.actions[0][0]) == "0VF0");
  CHECK(to_string(s.actions[0][1]) == "0VF1");
  CHECK(to_string(s.actions[0][2]) == "0F0");
}
