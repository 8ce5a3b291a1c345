// Source: k3-facts 2.12.
#include "models/config/expert_width.h"

#include <fmt/format.h>

#include <algorithm>

namespace k3sim {

std::optional<std::string> set_expert_width(ModelSpec& model, bool full) {
  if (model.layers.empty()) return std::nullopt;  // unknown model: reported elsewhere
  bool any = false;
  for (const LayerSpec& layer : model.layers) {
    const FfnSpec& f = layer.ffn;
    any = any || f.latent > 0 || f.widened_by > 1;
    if (!full || f.latent == 0 || !f.is_moe()) continue;
    const std::int64_t factor = model.hidden / f.latent;
    if (model.hidden % f.latent != 0 || f.experts % factor != 0 || f.topk % factor != 0)
      return fmt::format("{} experts of width {}, {} per token, do not become whole ones of width {}", f.experts,
                         f.latent, f.topk, model.hidden);
  }
  if (full && !any) return fmt::format("has no effect: model {} has no latent experts", model.name);
  for (LayerSpec& layer : model.layers) {
    FfnSpec& f = layer.ffn;
    if (full && f.latent > 0) {
      f.widened_by = model.hidden / f.latent;
      f.experts /= f.widened_by;
      f.topk /= f.widened_by;
      f.latent = 0;
    } else if (!full && f.widened_by > 1) {
      f.latent = model.hidden / f.widened_by;
      f.experts *= f.widened_by;
      f.topk *= f.widened_by;
      f.widened_by = 1;
    }
  }
  return std::nullopt;
}

std::int64_t values_sent_per_token(const ModelSpec& model) {
  const auto moe =
      std::find_if(model.layers.begin(), model.layers.end(), [](const LayerSpec& l) { return l.ffn.is_moe(); });
  if (moe == model.layers.end()) return 0;
  return moe->ffn.topk * (moe->ffn.latent > 0 ? moe->ffn.latent : model.hidden);
}

}  // namespace k3sim
