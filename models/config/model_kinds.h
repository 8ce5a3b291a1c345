// Questions about a model as a whole. Source: model_spec.h (a layer with experts has routed ones).
#pragma once

#include <algorithm>

#include "models/config/model_spec.h"

namespace k3sim {

inline bool has_routed_experts(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& l) { return l.ffn.is_moe(); });
}

}  // namespace k3sim
