// LatentMoE against full width: the same parameters, FLOPs and values per token.
#include <doctest/doctest.h>

#include "models/config/expert_width.h"
#include "models/config/model_loader.h"
#include "models/config/scenario_loader.h"

using namespace k3sim;

TEST_CASE("expert width: K3 sends as many values per token as K2, at both widths") {
  ModelSpec k3 = load_model("kimi_k3");
  const ModelSpec latent = k3;
  CHECK(values_sent_per_token(load_model("kimi_k2")) == 57'344);
  CHECK(values_sent_per_token(k3) == 57'344);
  CHECK_FALSE(set_expert_width(k3, true));
  CHECK(values_sent_per_token(k3) == 57'344);
  const FfnSpec &a = latent.layers.back().ffn, &b = k3.layers.back().ffn;
  CHECK(b.experts == 448);
  CHECK(b.topk == 8);
  CHECK(b.experts * k3.hidden * b.expert_intermediate == a.experts * a.latent * a.expert_intermediate);
  CHECK_FALSE(set_expert_width(k3, false));
  CHECK(k3.layers.back().ffn.experts == 896);
  CHECK(k3.layers.back().ffn.latent == 3584);
}

TEST_CASE("expert width: models without latent experts and widths that do not divide are refused") {
  ModelSpec k2 = load_model("kimi_k2");
  CHECK(set_expert_width(k2, true).value_or("").find("no latent experts") != std::string::npos);
  ModelSpec odd = load_model("kimi_k3");
  for (LayerSpec& l : odd.layers)
    if (l.ffn.is_moe()) l.ffn.topk = 15;
  CHECK(set_expert_width(odd, true).value_or("").find("15 per token") != std::string::npos);
  CHECK(odd.layers.back().ffn.latent == 3584);
  CHECK(load_scenario("k3_2048_h800", {"moe.expert_width=full"}).model.layers.back().ffn.topk == 8);
}
