// From the MoE section of a scenario to ratios over balanced routing.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "models/moe/moe_layer.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

MoeLayerSetup k3_layer(const std::string& dispatcher, double sigma) {
  MoeLayerSetup setup;
  setup.ffn.experts = 896;
  setup.ffn.topk = 16;
  setup.ffn.expert_intermediate = 3072;
  setup.ffn.latent = 3584;
  setup.hidden = 7168;
  setup.config.dispatcher = dispatcher;
  setup.config.routing.source = sigma > 0 ? "lognormal" : "balanced";
  setup.config.routing.skew_sigma = sigma;
  setup.ep = 64;
  setup.tokens_per_rank = 8192;
  setup.rates = dispatch_rates("h800_sxm");
  return setup;
}

double hottest(const MoeLayerPlan& plan) {
  double most = 0.0;
  for (int r = 0; r < 64; ++r) most = std::max(most, plan.row_ratio(r));
  return most;
}

}  // namespace

TEST_CASE("moe layer: balanced routing gives ratios of one") {
  for (const Dispatcher& d : dispatchers()) {
    if (d.name == "eplb") continue;  // redundant experts split what is already even
    CAPTURE(d.name);
    const MoeLayerPlan plan = MoeLayerModel(k3_layer(std::string(d.name), 0.0)).plan({3, 1});
    CHECK(plan.dispatch_ratio() == doctest::Approx(1.0));
    CHECK(plan.combine_ratio() == doctest::Approx(1.0));
    CHECK(hottest(plan) == doctest::Approx(1.0));
  }
}

TEST_CASE("moe layer: skew makes DeepEP ranks straggle and leaves MoonEP flat") {
  const MoeLayerPlan deepep = MoeLayerModel(k3_layer("deepep", 1.0)).plan({}),
                     moonep = MoeLayerModel(k3_layer("moonep", 1.0)).plan({});
  CHECK(hottest(deepep) > 1.5);
  CHECK(deepep.dispatch_ratio() > 1.05);
  CHECK(hottest(moonep) < 1.03);
  CHECK(moonep.dispatch_ratio() == doctest::Approx(1.0).epsilon(0.03));
  CHECK(moonep.routed.time.replicate > Time::ms(1));
}

TEST_CASE("moe layer: other layers and micro-batches draw other counts, the same ones repeat") {
  const MoeLayerModel model(k3_layer("deepep", 0.5));
  CHECK(model.counts({1, 2}).tokens == model.counts({1, 2}).tokens);
  CHECK(model.counts({1, 2}).tokens != model.counts({2, 1}).tokens);
  CHECK(model.counts({1, 2}).total() == 64LL * 8192 * 16);
}

TEST_CASE("moe layer: balanced counts differ by at most one over experts and keep every rank's total") {
  const ExpertCounts counts = balanced_counts({.ranks = 5, .experts = 30, .topk = 4, .tokens_per_rank = 17});
  const std::vector<std::int64_t> sums = counts.per_expert();
  const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
  CHECK(*high - *low <= 1);
  for (const std::int64_t rows : counts.per_source_rank()) CHECK(rows == 68);
}

TEST_CASE("moe layer: counts from a file are used as they are, and bad setups are named") {
  MoeLayerSetup setup = k3_layer("moonep", 0.0);
  setup.ffn.experts = 8;
  setup.ffn.topk = 2;
  setup.ep = 4;
  setup.config.routing.source = "file";
  setup.config.routing.file = std::string(K3SIM_TEST_DATA) + "/moe/vector1.csv";
  CHECK(MoeLayerModel(setup).counts({7, 7}).per_expert() == std::vector<std::int64_t>{10, 2, 3, 1, 0, 0, 5, 3});
  CHECK(MoeLayerModel(setup).plan({}).routed.max_rows() == 6);
  setup.ep = 3;
  CHECK_THROWS_WITH_AS(MoeLayerModel{setup}, doctest::Contains("parallel.ep: 8 experts do not divide over ep 3"),
                       ConfigError);
  setup.config.dispatcher = "deepepp";
  CHECK_THROWS_WITH_AS(MoeLayerModel{setup}, doctest::Contains("did you mean 'deepep'?"), ConfigError);
}
