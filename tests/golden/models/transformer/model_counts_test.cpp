// Published parameter and FLOP counts against the zoo.
// Source: k3-facts sections 1.3-1.5; model cards and papers named in models/zoo.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

const ComponentCount& component(const ModelAudit& a, const std::string& name) {
  for (const ComponentCount& c : a.components) {
    if (c.name == name) return c;
  }
  FAIL("no component " << name);
  return a.components.front();
}

double mflop(const ComponentCount& c) {
  return c.forward_flops_per_token.value() / 1e6;
}

}  // namespace

TEST_CASE("zoo: kimi_k3 has exactly the published parameters") {
  const ModelAudit a = audit(load_model("kimi_k3"));
  CHECK(a.total_parameters == 2779484476000);
  CHECK(a.active_parameters == 104189612640);
  CHECK(component(a, "kda").parameters == 443740384);
  CHECK(component(a, "kda").count == 69);
  CHECK(component(a, "mla").parameters == 232196096);
  CHECK(component(a, "mla").count == 24);
  CHECK(component(a, "routed_experts").parameters == 29595009024);
  CHECK(component(a, "shared_experts").parameters == 132120576);
  CHECK(component(a, "latent_projections").parameters == 51380224 + 3584);
  CHECK(component(a, "router").parameters == 6422528 + 896);
  CHECK(component(a, "dense_ffn").parameters == 726663168);
  CHECK(component(a, "lm_head").parameters == 1174405120);
  CHECK(component(a, "norms").count * component(a, "norms").parameters == 1340416);
  CHECK(component(a, "attnres_mix").count * component(a, "attnres_mix").parameters == 2680832);
}

TEST_CASE("zoo: the first four K3 layers at EP8 hold what a real build held per GPU") {
  ModelSpec m = load_model("kimi_k3");
  m.layers.resize(4);
  SplitConfig split;
  split.ep = 8;
  std::int64_t total = embedding_parameters(m, split).dense + head_parameters(m, split).dense;
  for (std::size_t i = 0; i < 4; ++i) {
    const ParameterCount p = layer_parameters(m, i, split);
    total += p.dense + p.experts;
  }
  CHECK(total == 16306996000);
  CHECK(total - 3 * 896 == 16306993312);
}

TEST_CASE("zoo: kimi_k3 FLOPs per token match the reference table") {
  ModelSpec m = load_model("kimi_k3");
  m.mtp_layers = 0;  // the table leaves it out
  const ModelAudit a = audit(m);
  CHECK(mflop(component(a, "kda")) == doctest::Approx(887.2).epsilon(1e-4));
  CHECK(mflop(component(a, "kda_core")) == doctest::Approx(11.3).epsilon(5e-3));
  CHECK(mflop(component(a, "mla")) == doctest::Approx(464.4).epsilon(1e-4));
  CHECK(mflop(component(a, "latent_projections")) == doctest::Approx(102.8).epsilon(1e-3));
  CHECK(mflop(component(a, "router")) == doctest::Approx(12.8).epsilon(5e-3));
  CHECK(mflop(component(a, "shared_experts")) == doctest::Approx(264.2).epsilon(1e-3));
  CHECK(mflop(component(a, "routed_experts")) == doctest::Approx(1057.0).epsilon(1e-4));
  CHECK(mflop(component(a, "dense_ffn")) == doctest::Approx(1453.3).epsilon(1e-4));
  CHECK(mflop(component(a, "lm_head")) == doctest::Approx(2348.8).epsilon(1e-4));
  double sum = 0;
  for (const ComponentCount& c : a.components) sum += static_cast<double>(c.count) * mflop(c);
  CHECK(sum == doctest::Approx(209128).epsilon(5e-6));
  for (const auto& [length, gflop] :
       {std::pair{4096, 636.0}, {8192, 646.0}, {65536, 772.0}, {262144, 1207.0}, {1048576, 2947.0}}) {
    CHECK(std::abs(3 * model_flops_per_token(m, length).value() / 1e9 - gflop) < 0.5);
  }
}

TEST_CASE("zoo: exact published totals of other families") {
  CHECK(audit(load_model("llama3_8b")).total_parameters == 8030261248);
  CHECK(audit(load_model("llama3_70b")).total_parameters == 70553706496);
  CHECK(audit(load_model("llama3_405b")).total_parameters == 405853388800);
  CHECK(audit(load_model("mixtral_8x7b")).total_parameters == 46702792704);
  CHECK(audit(load_model("mixtral_8x22b")).total_parameters == 140620634112);
  CHECK(audit(load_model("qwen3_30b_a3b")).total_parameters == 30532122624);
  CHECK(audit(load_model("qwen3_235b_a22b")).total_parameters == 235093634560);
}

TEST_CASE("zoo: rounded published totals and active counts") {
  struct Row {
    const char* name;
    double total_b, active_b, tolerance;
  };
  // Active counts as published: with the output head, DeepSeek and Kimi also with the embedding left out.
  for (const Row& r : {Row{"deepseek_v3", 671, 37, 0.02},
                       {"kimi_k2", 1040, 32.6, 0.03},
                       {"kimi_linear_48b", 48, 3, 0.05},
                       {"mixtral_8x7b", 46.7, 12.9, 0.02},
                       {"mixtral_8x22b", 141, 39, 0.02},
                       {"qwen3_30b_a3b", 30.5, 3.3, 0.1},
                       {"qwen3_235b_a22b", 235, 22, 0.03},
                       {"nemotron4_340b", 341, 331.6, 0.02},
                       {"nemotron4_15b", 15.7, 14.1, 0.02}}) {
    CAPTURE(r.name);
    const ModelAudit a = audit(load_model(r.name));
    CHECK(static_cast<double>(a.total_parameters) / 1e9 == doctest::Approx(r.total_b).epsilon(r.tolerance));
    CHECK(static_cast<double>(a.active_parameters) / 1e9 == doctest::Approx(r.active_b).epsilon(r.tolerance));
  }
}

TEST_CASE("zoo: GPT sizes follow the closed form 12 l h^2 (1 + 13/(12 h)) + (V + s) h of the 2021 paper") {
  struct Row {
    const char* name;
    double billions;
  };
  for (const Row& r : {Row{"gpt_1_7b", 1.7},
                       {"gpt_3_6b", 3.6},
                       {"gpt_7_5b", 7.5},
                       {"gpt_18b", 18.4},
                       {"gpt_39b", 39.1},
                       {"gpt_76b", 76.1},
                       {"gpt_145b", 145.6},
                       {"gpt_310b", 310.1},
                       {"gpt_530b", 529.6},
                       {"gpt_1t", 1008.0},
                       {"gpt3_175b", 174.6}}) {
    CAPTURE(r.name);
    const ModelSpec m = load_model(r.name);
    const std::int64_t h = m.hidden, l = static_cast<std::int64_t>(m.layers.size());
    const std::int64_t formula = 12 * l * h * h + 13 * l * h + (m.vocab + m.max_positions) * h;
    const std::int64_t total = audit(m).total_parameters;
    CHECK(total == formula + 2 * h);  // the paper leaves the final norm out
    CHECK(std::abs(static_cast<double>(total) / 1e9 - r.billions) < 0.06);
  }
}

TEST_CASE("model FLOPs: the conventions differ exactly by the attention scores and by the embedding") {
  const ModelSpec m = load_model("llama3_8b");
  const double causal = model_flops_per_token(m, 8192).value();
  const double full = model_flops_per_token(m, 8192, FlopConvention::full).value();
  CHECK(full - causal == doctest::Approx(32.0 * 8192 * (32 * 256)));
  const double six_n = model_flops_per_token(m, 8192, FlopConvention::six_n).value();
  CHECK(six_n == doctest::Approx(2.0 * 8030261248.0));
}

TEST_CASE("model FLOPs: MTP adds one layer, one projection and one head pass") {
  ModelSpec m = load_model("deepseek_v3");
  const double with = model_flops_per_token(m, 4096).value();
  m.mtp_layers = 0;
  const double without = model_flops_per_token(m, 4096).value();
  // Layer: 2 x (MLA 187,107,328 + router 1,835,008 + 9 experts 44,040,192 each) + causal scores; head 7168 x 129,280.
  const double layer = 2.0 * (187105280.0 + 1835008.0 + 9 * 44040192.0) + 4096.0 * 128 * 320;
  CHECK(with - without == doctest::Approx(layer + 2.0 * 7168 * 129280 + 4.0 * 7168 * 7168).epsilon(1e-9));
}
