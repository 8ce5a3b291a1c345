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

std::size_t MoeDraws::fullest_rank(const std::vector<int>& layers) const {
  std::vector<std::int64_t> rows(draws.front().ranks.size(), 0);
  for (const int layer : layers)
    for (int m = 0; m < micro_batches_; ++m) {
      const MoeDraw& d = at(layer, m);
      for (std::size_t r = 0; r < rows.size(); ++r) rows[r] += d.ranks[r].rows;
    }
  return static_cast<std::size_t>(std::max_element(rows.begin(), rows.end()) - rows.begin());
}

}  // namespace k3sim
