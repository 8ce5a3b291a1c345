// Parameters held by one rank of a layer, of the embedding, the head and an MTP layer.
// dense: divided weights / tp plus replicated ones; experts: whole experts / ep, their width / etp.
// Source: k3-facts section 1.3; check: first four K3 layers at EP8 = 16,306,996,000 parameters per GPU.
#include "models/transformer/counts.h"
#include "models/transformer/layers.h"
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

std::int64_t on_rank(const Weights& w, const SplitConfig& s) {
  return per_rank(w.divided, s.tp) + w.replicated;
}

}  // namespace

ParameterCount layer_parameters(const ModelSpec& model, std::size_t index, const SplitConfig& split) {
  const LayerSpec& layer = model.layers.at(index);
  ParameterCount count;
  count.dense =
      on_rank(attention_weights(model, layer.attention), split) + 2 * norm_weights(model) + 2 * attnres_weights(model);
  const FfnSpec& f = layer.ffn;
  if (!f.is_moe()) {
    count.dense += on_rank(dense_ffn_weights(model, f), split);
    return count;
  }
  count.dense += on_rank(router_weights(model, f), split) + on_rank(shared_expert_weights(model, f), split) +
                 on_rank(latent_weights(model, f), split);
  count.experts = per_rank(f.experts, split.ep) * per_rank(expert_weights(model, f), split.etp);
  return count;
}

ParameterCount embedding_parameters(const ModelSpec& model, const SplitConfig& split) {
  ParameterCount count;
  count.dense = per_rank(model.vocab, split.tp) * model.hidden;
  if (model.learned_positions) count.dense += model.max_positions * model.hidden;
  return count;
}

ParameterCount head_parameters(const ModelSpec& model, const SplitConfig& split) {
  ParameterCount count;
  count.dense = norm_weights(model) + attnres_weights(model);
  if (!model.tied_embeddings) count.dense += per_rank(model.vocab, split.tp) * model.hidden;
  return count;
}

ParameterCount mtp_parameters(const ModelSpec& model, const SplitConfig& split) {
  if (model.layers.empty()) return {};
  ModelSpec plain = model;  // outside the AttnRes stack
  plain.attnres_block = 0;
  ParameterCount count = layer_parameters(plain, model.layers.size() - 1, split);
  count.dense += 2 * model.hidden * model.hidden + 3 * norm_weights(model);
  return count;
}

}  // namespace k3sim
