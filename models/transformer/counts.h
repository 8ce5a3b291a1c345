// Parameter counts of the pieces of a layer, split into what tensor parallelism divides and what every rank holds.
// Source: k3-facts section 1.3 (the audit script), Megatron parameter placement.
#pragma once

#include <cstdint>

#include "models/config/model_spec.h"

namespace k3sim {

struct Weights {
  std::int64_t divided = 0;     // column- or row-parallel: / tp
  std::int64_t replicated = 0;  // norms, router, down projections, biases of row-parallel layers
  std::int64_t matmul = 0;      // of both, those used in matrix products (2 FLOPs per token each)
  std::int64_t total() const { return divided + replicated; }
};
Weights attention_weights(const ModelSpec& model, const AttentionSpec& a);
Weights dense_ffn_weights(const ModelSpec& model, const FfnSpec& f);
Weights shared_expert_weights(const ModelSpec& model, const FfnSpec& f);
Weights router_weights(const ModelSpec& model, const FfnSpec& f);       // selection bias included
Weights latent_weights(const ModelSpec& model, const FfnSpec& f);       // down, up, latent norm
std::int64_t expert_weights(const ModelSpec& model, const FfnSpec& f);  // of one routed expert
std::int64_t norm_weights(const ModelSpec& model);                      // of one norm over the hidden width
std::int64_t attnres_weights(const ModelSpec& model);                   // of one mix; 0 without AttnRes

}  // namespace k3sim
