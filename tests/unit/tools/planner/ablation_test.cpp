// What turning a K3 mechanism off must do, by what the mechanism is.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/config/scenario_loader.h"
#include "models/transformer/layers.h"
#include "tools/planner/ablation.h"

using namespace k3sim;

namespace {

EvaluateOptions coarse() {
  EvaluateOptions o;
  o.detail = StepGraphOptions::Detail::step;
  o.allow_assumed = true;
  return o;
}

const AblationRow* row_of(const Ablation& a, const std::string& name, bool cumulative) {
  const auto found = std::find_if(a.rows.begin(), a.rows.end(),
                                  [&](const AblationRow& r) { return r.name == name && r.cumulative == cumulative; });
  return found == a.rows.end() ? nullptr : &*found;
}

bool is_number(const AblationRow* r) {
  return r && (r->reason == Reason::ok || r->reason == Reason::memory);
}

}  // namespace

TEST_CASE("ablation: every K3 mechanism of the shipped scenarios can be turned off, alone and after the others") {
  MachineStore machines;
  const Ablation text = ablate("k3_256k_h800", {}, machines, coarse());
  for (const char* name :
       {"KDA -> full MLA", "LatentMoE -> full width", "MoonEP -> plain all-to-all", "KCP -> head all-to-all",
        "AttnRes boundaries cached -> naive", "pipeline ZeRO-2 -> ZeRO-1 on the GPU", "interleaving off"}) {
    INFO(std::string(name));
    CHECK(is_number(row_of(text, name, false)));
    CHECK(row_of(text, name, true));
  }
  const Ablation headline = ablate("k3_2048_h800", {}, machines, coarse());
  for (const char* name : {"activation manager -> full recompute", "offload off", "split weight gradients off"}) {
    INFO(std::string(name));
    CHECK(is_number(row_of(headline, name, false)));
    CHECK(row_of(headline, name, true));
  }
  const Ablation vision = ablate("k3_vision_h800", {}, machines, coarse());
  CHECK(is_number(row_of(vision, "vision in bubbles -> up front", false)));
  // Cumulative changes follow each other: they add up to the whole way.
  double sum = 0;
  const AblationRow* last = nullptr;
  for (const AblationRow& r : headline.rows)
    if (r.cumulative && is_number(&r)) sum += r.step_change_s, last = &r;
  REQUIRE(last);
  CHECK(sum == doctest::Approx((last->summary.step - headline.base.step).seconds()));
}

TEST_CASE("ablation: full-width experts keep parameters and model FLOPs, full attention costs more at long context") {
  const Scenario base = load_scenario("k3_256k_h800", {});
  const auto change_of = [](const std::string& name) {
    for (const Mechanism& m : mechanisms())
      if (name == m.name) return m.change;
    return static_cast<bool (*)(Scenario&)>(nullptr);
  };
  Scenario wide = base, attention = base;
  REQUIRE(change_of("LatentMoE -> full width")(wide));
  REQUIRE(change_of("KDA -> full MLA")(attention));
  const FfnSpec &before = base.model.layers.back().ffn, &after = wide.model.layers.back().ffn;
  CHECK(after.latent == 0);
  CHECK(before.experts * before.latent == after.experts * base.model.hidden);
  CHECK(before.topk * before.latent == after.topk * base.model.hidden);
  CHECK(model_flops_per_token(attention.model, 262144).value() >
        1.5 * model_flops_per_token(base.model, 262144).value());
  Scenario dense = load_scenario("llama3_405b_16384_h100", {});
  CHECK_FALSE(change_of("KDA -> full MLA")(dense));
  CHECK_FALSE(change_of("LatentMoE -> full width")(dense));
}
