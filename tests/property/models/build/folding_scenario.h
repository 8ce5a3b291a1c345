// Small symmetric steps on which folded and unfolded runs are compared, and a kernel cost that differs from kernel to
// kernel, so that nothing agrees by chance.
#pragma once

#include "models/build/step.h"
#include "tests/unit/models/build/fake_machine.h"

namespace k3sim::test {

struct FoldingLayout {
  int nodes, tp, pp, cp, dp, ep, vpp;
};

inline Scenario folding_scenario(const FoldingLayout& l, std::int64_t expert_width) {
  Scenario s = tiny_scenario(l.pp, 2 * l.pp * l.dp, 2 * l.pp * l.vpp);
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
      layer.ffn.expert_intermediate = expert_width;
    }
  return s;
}

inline std::shared_ptr<FakeCost> varied_cost() {
  return std::make_shared<FakeCost>([](const Kernel& k) {
    return Time::ns(100 + k.m % 977 + static_cast<std::int64_t>(k.family) * 37) + Bytes(k.bytes) / Bandwidth(1e12);
  });
}

}  // namespace k3sim::test
