// Folded and unfolded runs of the same symmetric step agree to the picosecond.
#include <doctest/doctest.h>

#include "models/build/step.h"
#include "models/config/data_files.h"
#include "tests/unit/models/build/fake_machine.h"

using namespace k3sim;

namespace {

struct Layout {
  int nodes, tp, pp, cp, dp, ep, vpp;
};

Scenario scenario(const Layout& l) {
  Scenario s = test::tiny_scenario(l.pp, 2 * l.pp * l.dp, 2 * l.pp * l.vpp);
  s.cluster.nodes = l.nodes;
  s.cluster.gpus_per_node = l.tp * l.pp * l.cp * l.dp / l.nodes;
  s.parallel.tp = l.tp;
  s.parallel.cp = l.cp;
  s.parallel.dp = l.dp;
  s.parallel.ep = l.ep;
  s.parallel.vpp = l.vpp;
  s.schedule.name = l.vpp > 1 ? "interleaved" : "1f1b";
  s.optimizer.zero = 1;
  s.optimizer.name = "adamw";
  if (l.ep > 1)
    for (LayerSpec& layer : s.model.layers) {
      layer.ffn.intermediate = 0;
      layer.ffn.experts = 8;
      layer.ffn.topk = 2;
      layer.ffn.expert_intermediate = 64;
    }
  return s;
}

Machine machine() {
  Machine m = test::fake_machine(Time(), Time(), Time());
  m.cost = std::make_shared<test::FakeCost>([](const Kernel& k) {
    return Time::ns(100 + k.m % 977 + static_cast<std::int64_t>(k.family) * 37) + Bytes(k.bytes) / Bandwidth(1e12);
  });
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
