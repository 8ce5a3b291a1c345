// Splitting a layer over ranks neither creates nor loses work, weights or kept bytes; programs are well formed.
// Source: engine-design notes section 20 (conservation tests); exceptions are named where the split adds real work.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "models/config/model_loader.h"
#include "models/transformer/counts.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

struct Sums {
  double flops = 0, gemm_forward = 0, gemm_backward = 0, saved = 0;
};

// Work that a context split adds on purpose: KCP pre-passes, and every rank expanding all MLA latents.
bool added_by_context_split(const std::string& name) {
  return name.rfind("kcp_", 0) == 0 || name == "kv_b_proj";
}

Sums sums_of(const LayerProgram& p, bool skip_context_extras = false) {
  Sums s;
  for (const auto* list : {&p.forward, &p.backward}) {
    for (const Item& i : *list) {
      if (i.is_comm || (skip_context_extras && added_by_context_split(i.name))) continue;
      s.flops += i.kernel.flops.value();
      const bool gemm = i.kernel.family == KernelFamily::gemm || i.kernel.family == KernelFamily::grouped_gemm;
      if (gemm) (list == &p.forward ? s.gemm_forward : s.gemm_backward) += i.kernel.flops.value();
    }
  }
  for (const SavedTensor& t : p.saved) s.saved += t.bytes.as_double();
  return s;
}

SplitConfig whole(std::int64_t tokens = 4096) {
  SplitConfig split;
  split.tokens = split.sequence = tokens;
  return split;
}

struct Case {
  const char* model;
  std::size_t layer;
};
const std::vector<Case> kCases = {{"kimi_k3", 0},        {"kimi_k3", 1},         {"kimi_k3", 3},
                                  {"deepseek_v3", 0},    {"deepseek_v3", 9},     {"llama3_70b", 4},
                                  {"mixtral_8x7b", 2},   {"qwen3_235b_a22b", 7}, {"gpt3_175b", 3},
                                  {"nemotron4_340b", 1}, {"kimi_linear_48b", 2}};

}  // namespace

TEST_CASE(
    "conservation: tensor-parallel ranks with sequence parallelism do the unsplit FLOPs and keep the unsplit bytes") {
  for (const Case& c : kCases) {
    const ModelSpec m = load_model(c.model);
    const Sums full = sums_of(layer_program(m, c.layer, whole()));
    for (int tp : {2, 4, 8}) {
      if (m.layers[c.layer].attention.kind == AttentionKind::mha && m.layers[c.layer].attention.kv_heads < tp) continue;
      CAPTURE(c.model);
      CAPTURE(c.layer);
      CAPTURE(tp);
      SplitConfig split = whole();
      split.tp = tp;
      split.sequence_parallel = true;
      const Sums rank = sums_of(layer_program(m, c.layer, split));
      CHECK(tp * rank.flops == doctest::Approx(full.flops).epsilon(1e-12));
      CHECK(tp * rank.saved == doctest::Approx(full.saved).epsilon(1e-12));
    }
  }
}

TEST_CASE("conservation: context-parallel ranks do the unsplit FLOPs, apart from what the split adds by design") {
  for (const Case& c : kCases) {
    const ModelSpec m = load_model(c.model);
    const Sums full = sums_of(layer_program(m, c.layer, whole(32768)), true);
    for (int cp : {2, 4, 16}) {
      CAPTURE(c.model);
      CAPTURE(cp);
      SplitConfig split = whole(32768);
      split.tokens /= cp;
      split.cp = cp;
      CHECK(cp * sums_of(layer_program(m, c.layer, split), true).flops == doctest::Approx(full.flops).epsilon(1e-12));
    }
  }
}

TEST_CASE("conservation: balanced expert parallelism changes neither FLOPs nor rows of a rank") {
  for (const char* dispatcher : {"alltoall", "allgather", "deepep", "moonep"}) {
    for (int fusion : {0, 1, 2}) {
      const ModelSpec m = load_model("kimi_k3");
      SplitConfig split = whole();
      split.fusion = fusion;
      const Sums full = sums_of(layer_program(m, 1, split));
      split.ep = 64;
      split.dispatcher = dispatcher;
      CHECK(sums_of(layer_program(m, 1, split)).flops == doctest::Approx(full.flops).epsilon(1e-12));
    }
  }
}

TEST_CASE("conservation: expert-tensor parallelism divides expert work among its ranks") {
  const ModelSpec m = load_model("mixtral_8x22b");
  const Sums full = sums_of(layer_program(m, 1, whole()));
  for (int t : {2, 4, 8}) {
    SplitConfig split = whole();
    split.tp = split.etp = t;
    split.sequence_parallel = true;
    CHECK(t * sums_of(layer_program(m, 1, split)).flops == doctest::Approx(full.flops).epsilon(1e-12));
  }
}

TEST_CASE("conservation: weights of all ranks add up to the unsplit layer, replicated ones counted once") {
  for (const Case& c : kCases) {
    const ModelSpec m = load_model(c.model);
    const LayerSpec& layer = m.layers[c.layer];
    const ParameterCount full = layer_parameters(m, c.layer, SplitConfig{});
    std::int64_t replicated =
        attention_weights(m, layer.attention).replicated + 2 * norm_weights(m) + 2 * attnres_weights(m);
    if (layer.ffn.is_moe()) {
      replicated += router_weights(m, layer.ffn).replicated + latent_weights(m, layer.ffn).replicated +
                    shared_expert_weights(m, layer.ffn).replicated;
    } else {
      replicated += dense_ffn_weights(m, layer.ffn).replicated;
    }
    for (int tp : {2, 4, 8}) {
      CAPTURE(c.model);
      CAPTURE(tp);
      SplitConfig split;
      split.tp = tp;
      CHECK(tp * layer_parameters(m, c.layer, split).dense - (tp - 1) * replicated == full.dense);
      split.ep = layer.ffn.is_moe() ? 8 : 1;
      split.etp = tp;
      CHECK(split.ep * tp * layer_parameters(m, c.layer, split).experts == full.experts);
    }
    CHECK(embedding_parameters(m, SplitConfig{}).dense > 0);
  }
}

TEST_CASE("conservation: layers, embedding and head add up to the audit") {
  for (const std::string& name : known_models()) {
    CAPTURE(name);
    const ModelSpec m = load_model(name);
    std::int64_t total = embedding_parameters(m, {}).dense + head_parameters(m, {}).dense;
    for (std::size_t l = 0; l < m.layers.size(); ++l) {
      const ParameterCount p = layer_parameters(m, l, {});
      total += p.dense + p.experts;
    }
    CHECK(total == audit(m).total_parameters);
  }
}

TEST_CASE("conservation: kernels of a layer carry exactly the audited forward FLOPs") {
  ModelSpec m = load_model("kimi_k3");
  m.mtp_layers = 0;
  double sum = 0, core = 0;
  for (std::size_t l = 0; l < m.layers.size(); ++l) {
    for (const Item& i : layer_program(m, l, whole(8192)).forward) {
      (i.kernel.family == KernelFamily::kda ? core : sum) += i.kernel.flops.value();
    }
  }
  for (const Item& i : head_program(m, whole(8192)).forward) sum += i.kernel.flops.value();
  double audited = model_flops_per_token(m, 8192).value();
  for (const ComponentCount& c : audit(m).components) {
    if (c.name == "kda_core") audited -= static_cast<double>(c.count) * c.forward_flops_per_token.value();
  }
  CHECK(sum / 8192 == doctest::Approx(audited).epsilon(1e-9));
  CHECK(core / 8192 / 69 / 96 == doctest::Approx(126976.0));  // report formula at chunk 64
}

TEST_CASE("programs: backward does twice the forward GEMM work, one input and one weight gradient each") {
  for (const Case& c : kCases) {
    for (int fusion : {0, 1, 2}) {
      SplitConfig split = whole();
      split.fusion = fusion;
      const Sums s = sums_of(layer_program(load_model(c.model), c.layer, split));
      CHECK(s.gemm_backward == doctest::Approx(2 * s.gemm_forward).epsilon(1e-12));
    }
  }
}

TEST_CASE("programs: dependencies point backwards and every kept tensor belongs to a module that forward runs") {
  for (const Case& c : kCases) {
    const ModelSpec m = load_model(c.model);
    for (int variant = 0; variant < 24; ++variant) {
      SplitConfig split = whole();
      split.fusion = variant % 3;
      split.tp = variant & 4 ? 4 : 1;
      split.sequence_parallel = split.tp > 1;
      split.cp = variant & 8 ? 2 : 1;
      split.tokens /= split.cp;
      split.ep = m.layers[c.layer].ffn.is_moe() && variant % 2 == 0 ? 8 : 1;
      split.linear_dtype = variant >= 16 ? Dtype::fp8 : Dtype::bf16;
      const LayerProgram p = layer_program(m, c.layer, split);
      std::set<Module> forward_modules;
      for (const auto* list : {&p.forward, &p.backward}) {
        for (std::size_t i = 0; i < list->size(); ++i) {
          for (std::uint16_t a : (*list)[i].after) CHECK(a < i);
          if (list == &p.forward) forward_modules.insert((*list)[i].module);
        }
      }
      for (const SavedTensor& t : p.saved) {
        CHECK(t.bytes.count() > 0);
        if (t.recomputable) CHECK(forward_modules.count(t.module) == 1);
      }
      CHECK(p.workspace.count() > 0);
    }
  }
}

TEST_CASE("programs: FP8 changes linear GEMMs only, adds quantise kernels and halves what they keep") {
  const ModelSpec m = load_model("llama3_70b");
  SplitConfig split = whole();
  const LayerProgram bf16 = layer_program(m, 3, split);
  split.linear_dtype = Dtype::fp8;
  const LayerProgram fp8 = layer_program(m, 3, split);
  CHECK(sums_of(fp8).flops == sums_of(bf16).flops);
  int quantise = 0;
  for (const Item& i : fp8.forward) {
    if (i.kernel.family == KernelFamily::gemm) CHECK(i.kernel.dtype == Dtype::fp8);
    if (i.kernel.family == KernelFamily::attention) CHECK(i.kernel.dtype == Dtype::bf16);
    quantise += std::string(i.kernel.name) == "quantize_input" ? 1 : 0;
  }
  CHECK(quantise == 4);  // qkv, output projection, up, down
  CHECK(sums_of(fp8).saved < sums_of(bf16).saved);
  for (const Item& i : head_program(m, split).forward) {
    if (i.kernel.family == KernelFamily::gemm) CHECK(i.kernel.dtype == Dtype::bf16);
  }
}
