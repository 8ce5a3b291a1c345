// Look-up and sums over draws. Source: moe_draws.h.
#include "models/build/moe_draws.h"

#include <algorithm>

namespace k3sim {

bool MoeDraw::stragglers() const {
  const auto [low, high] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const EpRankLoad& a, const EpRankLoad& b) { return a.rows < b.rows; });
  return high->rows - low->rows > 1;
}

std::size_t MoeDraws::index(int layer, int micro_batch) const {
  const auto exact = std::lower_bound(layers_.begin(), layers_.end(), layer);
  const std::size_t known = exact != layers_.end() && *exact == layer
                                ? static_cast<std::size_t>(exact - layers_.begin())
                                : static_cast<std::size_t>(std::max(0, layer)) % layers_.size();
  return known * static_cast<std::size_t>(micro_batches_) + static_cast<std::size_t>(micro_batch % micro_batches_);
}

bool MoeDraws::stragglers() const {
  return std::any_of(draws.begin(), draws.end(), [](const MoeDraw& d) { return d.stragglers(); });
}

}  // namespace k3sim
