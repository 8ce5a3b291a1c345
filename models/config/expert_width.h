// moe.expert_width: experts of the model's full width instead of its latent one, the LatentMoE rule backwards: experts
// and choices shrink by the factor a by which the width grows.
//   parameters  E l f = (E / a) (a l) f      FLOPs per token  K l f = (K / a) (a l) f      values sent  K l = (K / a) a
//   l
// K3: 896 experts, top-16, 3,584 wide <-> 448, top-8, 7,168: both send 57,344 values per token and direction, as K2
// does. Source: k3-facts 2.12 (arXiv:2601.18089). Valid when a = hidden / latent is whole and divides E and K.
#pragma once

#include <optional>
#include <string>

#include "models/config/model_spec.h"

namespace k3sim {

// Changes every latent MoE layer to full width, or back. What is wrong with it, when the layers do not allow it or the
// model has none; the model is unchanged then.
std::optional<std::string> set_expert_width(ModelSpec& model, bool full);

// Values that one token sends per direction in the model's first MoE layer; 0 without one.
std::int64_t values_sent_per_token(const ModelSpec& model);

}  // namespace k3sim
