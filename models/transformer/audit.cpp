// Whole-model audit: parameters and FLOPs per component, total and active parameters, model FLOPs per token.
//
//   active = total - embedding tables (unless the table is also the head) - unchosen experts
//   FLOPs per token, forward: 2 x matrix weights in use + KDA core + softmax scores, where one softmax layer costs
//     full 2 s heads (dim_qk + dim_v), causal half of it (a window w covers w s - w^2 / 2 pairs of the causal square).
//   KDA core per token and head: 6 d^2 + 8 C d + 12 C^2 with C = 16 (FlashKDA), the count behind the published totals.
// Each MTP layer adds its layer, the 2h x h projection and one more head pass; 6N adds the embedding and no attention.
// Source: k3-facts sections 1.3, 1.4, 4.2; validation/README.md counting rules.
#include <algorithm>
#include <string>

#include "models/transformer/counts.h"
#include "models/transformer/layers.h"

namespace k3sim {
namespace {

double as_d(std::int64_t v) {
  return static_cast<double>(v);
}

double kda_core_flops(const AttentionSpec& a) {
  constexpr double kChunk = 16;
  const double d = as_d(a.qk_dim);
  return as_d(a.heads) * (6 * d * d + 8 * kChunk * d + 12 * kChunk * kChunk);
}

double score_flops(const AttentionSpec& a, std::int64_t sequence, bool causal) {
  const double width = as_d(a.heads * (a.qk_dim + a.v_dim)), s = as_d(sequence);
  const bool windowed = a.window > 0 && a.window < sequence;
  const double w = as_d(a.window);
  if (!causal) return 2 * width * (windowed ? w : s);
  return 2 * width * (windowed ? w - 0.5 * w * w / s : 0.5 * s);
}

const char* attention_name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::mha:
      return "attention";
    case AttentionKind::mla:
      return "mla";
    case AttentionKind::kda:
      return "kda";
  }
  return "attention";
}

// Adds `count` of a component, joining it with an equal one.
void add(ModelAudit& audit, const std::string& name, std::int64_t count, std::int64_t parameters, double flops) {
  if (parameters == 0 && flops == 0) return;
  audit.total_parameters += count * parameters;
  for (ComponentCount& c : audit.components) {
    if (c.name == name && c.parameters == parameters) {
      c.count += count;
      return;
    }
  }
  audit.components.push_back({name, count, parameters, Flops(flops)});
}

void add(ModelAudit& audit, const std::string& name, const Weights& w) {
  add(audit, name, 1, w.total(), 2 * as_d(w.matmul));
}

void add_layer(ModelAudit& audit, const ModelSpec& model, const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  const FfnSpec& f = layer.ffn;
  add(audit, attention_name(a.kind), attention_weights(model, a));
  if (a.kind == AttentionKind::kda) add(audit, "kda_core", 1, 0, kda_core_flops(a));
  if (!f.is_moe()) {
    add(audit, "dense_ffn", dense_ffn_weights(model, f));
    return;
  }
  const std::int64_t expert = expert_weights(model, f);
  add(audit, "routed_experts", 1, f.experts * expert, 2 * as_d(f.topk * expert));
  audit.active_parameters -= (f.experts - f.topk) * expert;
  add(audit, "shared_experts", shared_expert_weights(model, f));
  add(audit, "latent_projections", latent_weights(model, f));
  add(audit, "router", router_weights(model, f));
}

}  // namespace

ModelAudit audit(const ModelSpec& model) {
  ModelAudit out;
  const std::int64_t layers = static_cast<std::int64_t>(model.layers.size()), table = model.vocab * model.hidden;
  for (const LayerSpec& layer : model.layers) add_layer(out, model, layer);
  add(out, "embedding", 1, table, 0);
  if (model.learned_positions) add(out, "positions", 1, model.max_positions * model.hidden, 0);
  add(out, "lm_head", 1, model.tied_embeddings ? 0 : table, 2 * as_d(table));
  add(out, "norms", 2 * layers + 1, norm_weights(model), 0);
  if (model.attnres_block > 0) add(out, "attnres_mix", 2 * layers + 1, attnres_weights(model), 0);
  out.active_parameters += out.total_parameters;
  if (!model.tied_embeddings) out.active_parameters -= table;
  if (model.learned_positions) out.active_parameters -= model.max_positions * model.hidden;
  return out;
}

Flops model_flops_per_token(const ModelSpec& model, std::int64_t sequence, FlopConvention convention) {
  const ModelAudit counts = audit(model);
  const std::int64_t table = model.vocab * model.hidden;
  if (convention == FlopConvention::six_n) {
    return Flops(2 * as_d(counts.active_parameters + (model.tied_embeddings ? 0 : table)));
  }
  const bool causal = convention == FlopConvention::causal;
  double total = 0;
  for (const ComponentCount& c : counts.components) total += as_d(c.count) * c.forward_flops_per_token.value();
  for (const LayerSpec& layer : model.layers) {
    if (layer.attention.kind != AttentionKind::kda) total += score_flops(layer.attention, sequence, causal);
  }
  if (model.mtp_layers > 0 && !model.layers.empty()) {
    ModelSpec extra = model;
    extra.layers = {model.layers.back()};
    extra.mtp_layers = 0;
    const double layer_and_head = model_flops_per_token(extra, sequence, convention).value();
    total += as_d(model.mtp_layers) * (layer_and_head + 4 * as_d(model.hidden * model.hidden));
  }
  return Flops(total);
}

}  // namespace k3sim
