// Order statistics of the timing samples.
// Source: engine-design.md section 14.6.
#include "calibrate/harness/repeat_until_stable.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {

namespace {

double quantile_of_sorted(const std::vector<double>& s, double q) {
  const double rank = q * static_cast<double>(s.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(rank));
  const std::size_t high = std::min(low + 1, s.size() - 1);
  return s[low] + (rank - static_cast<double>(low)) * (s[high] - s[low]);
}

}  // namespace

double quantile(std::vector<double> samples, double q) {
  CS_CHECK(!samples.empty() && q >= 0 && q <= 1, "quantile {} of {} samples", q, samples.size());
  std::sort(samples.begin(), samples.end());
  return quantile_of_sorted(samples, q);
}

void RepeatUntilStable::add(double sample_us) {
  CS_CHECK(std::isfinite(sample_us) && sample_us >= 0, "a sample of {} us", sample_us);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), sample_us), sample_us);
  total_us_ += sample_us;
}

double RepeatUntilStable::relative_interval() const {
  const double n = static_cast<double>(sorted_.size());
  if (n < 2) return std::numeric_limits<double>::infinity();
  const double half = 0.98 * std::sqrt(n);
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)));
  const auto high = static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
  const double median = quantile_of_sorted(sorted_, 0.5);
  return median > 0 ? (sorted_[high] - sorted_[low]) / 2 / median : 0.0;
}

bool RepeatUntilStable::finished() const {
  const int n = static_cast<int>(sorted_.size());
  if (n >= rule_.max_reps) return true;
  if (total_us_ >= rule_.max_total_us) return n >= rule_.floor_reps;
  return n >= rule_.min_reps && relative_interval() < rule_.rel_interval;
}

Summary RepeatUntilStable::summary() const {
  CS_CHECK(!sorted_.empty(), "no samples");
  return {quantile_of_sorted(sorted_, 0.5), quantile_of_sorted(sorted_, 0.2), quantile_of_sorted(sorted_, 0.8),
          relative_interval(), static_cast<int>(sorted_.size())};
}

}  // namespace k3sim
