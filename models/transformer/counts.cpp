// Parameter counts; formulas are those of the audit script in k3-facts section 1.3, generalised to the other families.
// Exact: kimi_k3 gives 2,779,484,476,000 in total.
// Source: k3-facts section 1.3; Hugging Face model code of the other families.
#include "models/transformer/counts.h"

namespace k3sim {
namespace {

// Adds a weight matrix of `size` entries used in a product.
void matrix(Weights& w, std::int64_t size, bool divided) {
  (divided ? w.divided : w.replicated) += size;
  w.matmul += size;
}

void output_projection(Weights& w, const AttentionSpec& a, std::int64_t h) {
  const std::int64_t width = a.heads * a.v_dim;
  if (a.output_gate == GateKind::full) matrix(w, h * width, true);
  if (a.output_gate == GateKind::low_rank) {
    matrix(w, h * a.gate_rank, false);
    matrix(w, a.gate_rank * width, true);
  }
  matrix(w, width * h, true);
  if (a.out_bias) w.replicated += h;
}

Weights mha(const AttentionSpec& a, std::int64_t h) {
  Weights w;
  const std::int64_t columns = a.heads * a.qk_dim + a.kv_heads * (a.qk_dim + a.v_dim);
  matrix(w, h * columns, true);
  if (a.qkv_bias) w.divided += columns;
  if (a.qk_norm) w.replicated += 2 * a.qk_dim;
  return w;
}

Weights mla(const AttentionSpec& a, std::int64_t h) {
  Weights w;
  const std::int64_t query = a.heads * a.qk_dim;
  if (a.q_lora_rank > 0) {
    matrix(w, h * a.q_lora_rank, false);
    w.replicated += a.q_lora_rank;
    matrix(w, a.q_lora_rank * query, true);
  } else {
    matrix(w, h * query, true);
  }
  matrix(w, h * (a.kv_lora_rank + a.rope_dim), false);
  w.replicated += a.kv_lora_rank;
  matrix(w, a.kv_lora_rank * a.heads * (a.qk_dim - a.rope_dim + a.v_dim), true);
  return w;
}

Weights kda(const AttentionSpec& a, std::int64_t h) {
  Weights w;
  const std::int64_t qk = a.heads * a.qk_dim, v = a.heads * a.v_dim;
  matrix(w, h * (2 * qk + v), true);
  w.divided += (2 * qk + v) * a.conv_kernel;
  matrix(w, h * a.decay_rank, false);
  matrix(w, a.decay_rank * qk, true);
  w.divided += qk + a.heads;  // dt_bias and A_log
  matrix(w, h * a.heads, true);
  w.replicated += a.v_dim;  // head norm
  return w;
}

std::int64_t ffn_matrices(Activation kind) {
  return is_gated(kind) ? 3 : 2;
}

}  // namespace

Weights attention_weights(const ModelSpec& model, const AttentionSpec& a) {
  Weights w;
  switch (a.kind) {
    case AttentionKind::mha:
      w = mha(a, model.hidden);
      break;
    case AttentionKind::mla:
      w = mla(a, model.hidden);
      break;
    case AttentionKind::kda:
      w = kda(a, model.hidden);
      break;
  }
  output_projection(w, a, model.hidden);
  return w;
}

Weights dense_ffn_weights(const ModelSpec& model, const FfnSpec& f) {
  Weights w;
  matrix(w, ffn_matrices(f.activation) * model.hidden * f.intermediate, true);
  if (f.bias) {
    w.divided += f.intermediate * (is_gated(f.activation) ? 2 : 1);
    w.replicated += model.hidden;
  }
  return w;
}

Weights shared_expert_weights(const ModelSpec& model, const FfnSpec& f) {
  Weights w;
  matrix(w, ffn_matrices(f.activation) * model.hidden * f.shared_intermediate, true);
  if (f.shared_gate) matrix(w, model.hidden, false);
  return w;
}

Weights router_weights(const ModelSpec& model, const FfnSpec& f) {
  Weights w;
  matrix(w, f.experts * model.hidden, false);
  if (f.selection_bias) w.replicated += f.experts;
  return w;
}

Weights latent_weights(const ModelSpec& model, const FfnSpec& f) {
  Weights w;
  matrix(w, 2 * model.hidden * f.latent, false);
  if (f.latent_norm) w.replicated += f.latent;
  return w;
}

std::int64_t expert_weights(const ModelSpec& model, const FfnSpec& f) {
  return ffn_matrices(f.activation) * (f.latent > 0 ? f.latent : model.hidden) * f.expert_intermediate;
}

std::int64_t norm_weights(const ModelSpec& model) {
  return model.hidden * (model.norm_bias ? 2 : 1);
}

std::int64_t attnres_weights(const ModelSpec& model) {
  return model.attnres_block > 0 ? 2 * model.hidden : 0;
}

}  // namespace k3sim
