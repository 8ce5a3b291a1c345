// Bisection on the exponent: the share of the first group grows with it. Source: group_sizes.h.
#include "models/cost/group_sizes.h"

#include <cmath>

namespace k3sim {

namespace {

double power_sum(std::int64_t groups, double exponent) {
  double sum = 0;
  for (std::int64_t i = 1; i <= groups; ++i) sum += std::pow(static_cast<double>(i), -exponent);
  return sum;
}

}  // namespace

std::vector<double> group_sizes(std::int64_t groups, std::int64_t rows, std::int64_t largest) {
  const double n = static_cast<double>(groups), total = static_cast<double>(rows);
  std::vector<double> sizes(static_cast<std::size_t>(groups), total / n);
  if (groups == 1 || static_cast<double>(largest) <= total / n) return sizes;
  const double share = static_cast<double>(largest) / total;
  double low = 0, high = 8;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (1.0 / power_sum(groups, middle) < share ? low : high) = middle;
  }
  const double sum = power_sum(groups, low);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = total * std::pow(static_cast<double>(i + 1), -low) / sum;
  return sizes;
}

std::int64_t zipf_largest(std::int64_t groups, std::int64_t rows) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(rows) / power_sum(groups, 1.0)));
}

}  // namespace k3sim
