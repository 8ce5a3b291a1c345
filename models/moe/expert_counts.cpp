// Sums over the count matrix and the MaxVio measure.
//   MaxVio = max_e count[e] / mean_e count[e] - 1
// Source: k3-facts section 3.7 (column MaxVio). Valid for any non-negative counts.
#include "models/moe/expert_counts.h"

#include <algorithm>
#include <numeric>

namespace k3sim {

std::vector<std::int64_t> ExpertCounts::per_expert() const {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(experts), 0);
  const std::int32_t* row = tokens.data();
  for (int r = 0; r < ranks; ++r, row += experts) {
    for (int e = 0; e < experts; ++e) sum[static_cast<std::size_t>(e)] += row[e];
  }
  return sum;
}

std::vector<std::int64_t> ExpertCounts::per_source_rank() const {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(ranks), 0);
  for (int r = 0; r < ranks; ++r) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(index(r, 0));
    sum[static_cast<std::size_t>(r)] = std::accumulate(begin, begin + experts, std::int64_t{0});
  }
  return sum;
}

std::vector<std::int64_t> ExpertCounts::per_owner_rank() const {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(ranks), 0);
  const std::vector<std::int64_t> by_expert = per_expert();
  for (int e = 0; e < experts; ++e) sum[static_cast<std::size_t>(owner(e))] += by_expert[static_cast<std::size_t>(e)];
  return sum;
}

std::int64_t ExpertCounts::total() const {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

double max_violation(const std::vector<std::int64_t>& per_expert) {
  const std::int64_t total = std::accumulate(per_expert.begin(), per_expert.end(), std::int64_t{0});
  if (total == 0) return 0.0;
  const std::int64_t hottest = *std::max_element(per_expert.begin(), per_expert.end());
  return static_cast<double>(hottest) * static_cast<double>(per_expert.size()) / static_cast<double>(total) - 1.0;
}

}  // namespace k3sim
