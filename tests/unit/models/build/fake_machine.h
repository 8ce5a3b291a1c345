// A machine whose kernels take exactly what a test says, for step times that can be computed by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "models/build/machine.h"

namespace k3sim::test {

class FakeCost final : public CostModel {
 public:
  explicit FakeCost(std::function<Time(const Kernel&)> f) : f_(std::move(f)) {}
  KernelTime time(const Kernel& k) const override { return {f_(k), Provenance::measured, 1.0}; }

 private:
  std::function<Time(const Kernel&)> f_;
};

// Forward, input-gradient and weight-gradient GEMMs of the FFN up projection take f, b, w; everything else is free.
inline Machine fake_machine(Time f, Time b, Time w) {
  Machine m;
  m.gpu.name = "fake";
  m.gpu.bf16_dense = FlopRate(1e15);
  m.gpu.fp8_dense = FlopRate(2e15);
  m.gpu.hbm = Bandwidth(1e12);
  m.gpu.host_link = Bandwidth(5e10);
  m.gpu.usable_memory = Bytes::gib(80);
  m.cost = std::make_shared<FakeCost>([=](const Kernel& k) {
    const bool counted = k.family == KernelFamily::gemm && std::string(k.name).find("ffn_up") != std::string::npos;
    if (!counted) return Time();
    return k.pass == Pass::forward ? f : k.pass == Pass::input_grad ? b : w;
  });
  m.comm.p2p_rate = Bandwidth(1e30);  // a transfer takes one picosecond
  m.software.host_launch = m.software.host_action = m.software.step_overhead = Time();
  m.software.bucket = Bytes(1);
  return m;
}

// Equal but for the picosecond of each transfer on the critical path.
inline bool equal_but_transfers(Time a, Time b) {
  const Time d = a > b ? a - b : b - a;
  return d <= Time::ns(1);
}

inline Scenario tiny_scenario(int pp, int microbatches, int layers) {
  Scenario s;
  s.model.name = "tiny";
  s.model.hidden = 64;
  s.model.vocab = 128;
  LayerSpec l;
  l.attention.heads = l.attention.kv_heads = 4;
  l.attention.qk_dim = l.attention.v_dim = 16;
  l.ffn.intermediate = 256;
  s.model.layers.assign(static_cast<std::size_t>(layers), l);
  s.cluster.nodes = 1;
  s.cluster.gpus_per_node = pp;
  s.parallel.pp = pp;
  s.parallel.dp = 1;
  s.batch.sequence = 32;
  s.batch.global_sequences = microbatches;
  s.optimizer.name = "none";
  s.optimizer.zero = 0;
  return s;
}

}  // namespace k3sim::test
