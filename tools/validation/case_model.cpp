// Architecture of a case. Conventions of the sources: kv_heads absent means multi-head; MLA dimensions as printed; MoE
// layers every `moe_every` layers after `dense_layers` dense ones; a sliding window applies to every `every`-th layer.
// Source: validation README.
#include <algorithm>

#include "tools/validation/case_scenario.h"

namespace k3sim {

namespace {

AttentionSpec attention(const CaseModel& m) {
  AttentionSpec a;
  a.heads = m.heads;
  a.kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  a.qk_dim = a.v_dim = m.head_dim > 0 ? m.head_dim : m.hidden / std::max<std::int64_t>(1, m.heads);
  if (m.mla) {
    a.kind = AttentionKind::mla;
    a.q_lora_rank = m.q_lora;
    a.kv_lora_rank = m.kv_lora;
    a.rope_dim = m.qk_rope;
    a.qk_dim = m.qk_nope + m.qk_rope;
    a.v_dim = m.v_dim;
  }
  a.rotary = !m.learned_positions && m.gated;
  // Qwen3 and OLMo 2 normalise queries and keys before the rotation (their modelling files in Hugging Face
  // transformers); the cases have no field for it.
  a.qk_norm = m.name.rfind("qwen3", 0) == 0 || m.name.rfind("olmo", 0) == 0;
  return a;
}

FfnSpec dense_ffn(const CaseModel& m) {
  FfnSpec f;
  f.activation = m.gated ? Activation::swiglu : Activation::gelu;
  f.intermediate = m.dense_ffn > 0 ? m.dense_ffn : m.ffn > 0 ? m.ffn : 4 * m.hidden;
  f.bias = !m.gated;
  return f;
}

FfnSpec moe_ffn(const CaseModel& m, bool node_limited) {
  FfnSpec f;
  f.activation = m.gated ? Activation::swiglu : Activation::gelu;
  f.experts = m.experts;
  f.topk = m.topk;
  f.expert_intermediate = m.expert_ffn;
  f.shared_intermediate = m.shared_ffn;
  // The authors' own runs route a token to at most four of eight groups, one per node; vendors' benchmarks of the same
  // model force balanced routing over all experts.
  if (node_limited) f.groups = 8, f.groups_chosen = 4;
  return f;
}

}  // namespace

ModelSpec case_model(const Case& c) {
  const CaseModel& m = c.model;
  ModelSpec spec;
  spec.name = m.name;
  spec.source = c.id;
  spec.hidden = m.hidden;
  spec.vocab = m.vocab;
  spec.max_positions = m.sequence;
  spec.tied_embeddings = m.tied;
  const bool gpt = !m.gated && m.experts == 0;
  spec.norm = gpt ? NormKind::layer_norm : NormKind::rms_norm;
  spec.norm_bias = gpt;
  spec.learned_positions = m.learned_positions || gpt;
  spec.mtp_layers = m.mtp_layers;
  for (std::int64_t l = 0; l < m.layers; ++l) {
    LayerSpec layer;
    layer.attention = attention(m);
    if (m.window > 0 && l % m.window_every == 0) layer.attention.window = m.window;
    const bool moe = m.experts > 0 && l >= m.dense_layers && (l - m.dense_layers) % m.moe_every == 0;
    layer.ffn = moe ? moe_ffn(m, c.group == "deepseek-v3") : dense_ffn(m);
    spec.layers.push_back(layer);
  }
  return spec;
}

}  // namespace k3sim
