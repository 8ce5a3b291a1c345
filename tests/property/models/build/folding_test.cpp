// Folded and unfolded runs of the same symmetric step agree to the picosecond.
#include <doctest/doctest.h>

#include "models/build/step.h"
#include "models/config/data_files.h"
#include "tests/property/models/build/folding_scenario.h"

using namespace k3sim;

namespace {

using Layout = test::FoldingLayout;

Scenario scenario(const Layout& l) {
  return test::folding_scenario(l, 64);
}

Machine machine() {
  Machine m = test::fake_machine(Time(), Time(), Time());
  m.cost = test::varied_cost();
  m.comm = load_comm_model(data_path("hardware_profiles/collectives/h100_sxm.yaml"));
  m.software.host_launch = Time::ns(50);
  m.software.bucket = Bytes(1 << 14);
  return m;
}

}  // namespace

TEST_CASE("folding: one representative per pipeline stage gives the same picosecond as all ranks") {
  const Machine m = machine();
  const std::vector<Layout> layouts{
      {1, 2, 1, 1, 1, 1, 1}, {1, 1, 2, 1, 2, 1, 1}, {1, 2, 2, 1, 2, 1, 1}, {1, 1, 1, 2, 4, 1, 1},
      {2, 2, 2, 2, 2, 1, 1}, {1, 1, 1, 1, 8, 8, 1}, {2, 1, 2, 1, 8, 4, 1}, {4, 2, 4, 1, 4, 4, 1},
      {8, 8, 2, 1, 4, 1, 1}, {8, 1, 8, 1, 8, 8, 1}, {8, 4, 4, 1, 4, 8, 2}, {8, 2, 4, 2, 4, 2, 2},
  };
  for (const Layout& l : layouts) {
    const Scenario s = scenario(l);
    for (auto detail : {StepGraphOptions::Detail::kernel, StepGraphOptions::Detail::step}) {
      StepOptions folded, unfolded;
      folded.graph.detail = unfolded.graph.detail = detail;
      unfolded.graph.unfold = {GroupKind::tp, GroupKind::cp, GroupKind::dp};
      const Time a = predict_step(s, m, folded).summary.step, b = predict_step(s, m, unfolded).summary.step;
      CAPTURE(l.tp);
      CAPTURE(l.pp);
      CAPTURE(l.dp);
      CAPTURE(l.ep);
      CHECK(a > Time());
      CHECK(a.picoseconds() == b.picoseconds());
    }
  }
}
