// Sizes of K3's parameter states and the work of its optimizer (k3-facts 1.5, 2.10, 8).
#include <doctest/doctest.h>

#include <cmath>

#include "models/build/muon_cost.h"
#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

bool near_figure(double got, double published, double tolerance = 0.005) {
  return std::abs(got - published) <= tolerance * published;
}

}  // namespace

TEST_CASE("muon: Newton-Schulz over K3 is about 245 PFLOP per step, experts 2,597 TFLOP per layer") {
  const ModelSpec m = load_model("kimi_k3");
  double total = 0;
  for (std::size_t i = 0; i < m.layers.size(); ++i)
    for (bool experts : {false, true})
      for (const MuonMatrix& x : muon_matrices(m, i, true, experts)) total += newton_schulz_flops(x).value();
  MESSAGE("whole model: " << total / 1e15 << " PFLOP");
  CHECK(near_figure(total / 1e15, 245, 0.02));
  double experts = 0;
  for (const MuonMatrix& x : muon_matrices(m, 10, true, true)) experts += newton_schulz_flops(x).value();
  CHECK(near_figure(experts / 1e12, 2597));
  CHECK(near_figure(newton_schulz_flops({1, 128, 7168}).value() / 1e12, 0.00237));
  CHECK(near_figure(newton_schulz_flops({288, 128, 7168}).value() / 1e12, 0.68));
  CHECK(near_figure(newton_schulz_flops({3, 7168, 12288}).value() / 1e12, 48.9));
  CHECK(near_figure(newton_schulz_flops({1, 7168, 12288}).value() / 1e12, 16.3));
  CHECK(near_figure(newton_schulz_flops({1, 3072, 3584}).value() / 1e12, 0.966));
}

TEST_CASE("parameters: bytes of K3's experts per rank by expert parallelism") {
  const ModelSpec m = load_model("kimi_k3");
  struct Row {
    int ep;
    double weights_gb, gradients_gb;
  };
  for (const Row& r : {Row{8, 7.399, 14.798}, Row{16, 3.699, 7.399}, Row{32, 1.850, 3.699}, Row{64, 0.925, 1.850}}) {
    SplitConfig s;
    s.tokens = s.sequence = 8192;
    s.ep = r.ep;
    const ParameterCount p = layer_parameters(m, 10, s);
    CAPTURE(r.ep);
    CHECK(near_figure(static_cast<double>(p.experts) * 2 / 1e9, r.weights_gb, 0.001));
    CHECK(near_figure(static_cast<double>(p.experts) * 4 / 1e9, r.gradients_gb, 0.001));
  }
}

TEST_CASE("parameters: whole-model bytes and the stages of the planning examples") {
  const ModelSpec m = load_model("kimi_k3");
  SplitConfig s;
  s.tokens = s.sequence = 8192;
  const ParameterCount kda = layer_parameters(m, 10, s);
  CHECK(near_figure(static_cast<double>(kda.dense) * 2 / 1e9, 1.267, 0.01));
  CHECK(near_figure(static_cast<double>(kda.experts) * 2 / 1e9, 59.19, 0.001));
  const double total = static_cast<double>(audit(m).total_parameters);
  CHECK(near_figure(total * 2 / 1e12, 5.56));
  CHECK(near_figure(total * 6 / 1e12, 16.68));
  CHECK(near_figure(total * 6 / 1e9 / 256, 65.2));
  CHECK(near_figure(total * 6 / 1e9 / 2048, 8.1, 0.01));
  CHECK(near_figure(total * 8 / 1e12, 22.2, 0.005));
  // PP8 x EP32: twelve layers per stage.
  s.ep = 32;
  const double routed = 12.0 * static_cast<double>(layer_parameters(m, 10, s).experts);
  CHECK(near_figure(routed * 2 / 1e9, 22.2));
  CHECK(near_figure(routed * 4 / 1e9, 44.4));
}
