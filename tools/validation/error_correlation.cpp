// See error_correlation.h. Source: Rousseeuw and Croux 1993.
#include "tools/validation/error_correlation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace k3sim {

namespace {

void add_pairs(const std::vector<double>& values, std::vector<double>& out) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) out.push_back(std::abs(values[i] - values[j]));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

ErrorCorrelation error_correlation(const std::vector<std::vector<double>>& errors) {
  ErrorCorrelation out;
  std::vector<double> all, within, between;
  for (const std::vector<double>& group : errors) {
    all.insert(all.end(), group.begin(), group.end());
    if (group.size() < 2) continue;
    ++out.groups;
    out.layouts += static_cast<int>(group.size());
    add_pairs(group, within);
  }
  add_pairs(all, between);
  if (within.empty()) return out;
  const double w = median(std::move(within)), b = median(std::move(between));
  out.rho = b > 0 ? std::clamp(1.0 - w * w / (b * b), 0.0, 1.0) : 0.0;
  return out;
}

ErrorCorrelation error_correlation(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows) {
  std::map<std::string, const Case*> by_id;
  for (const Case& c : cases) by_id[c.id] = &c;
  std::map<std::string, std::vector<double>> groups;
  for (const ValidationRow& r : rows) {
    if (r.kind != "model" || r.status != "predicted") continue;
    const Case& c = *by_id.at(r.id);
    groups[fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", c.group, c.model.name, c.model.layers, c.gpu, c.gpus,
                       c.gbs.value_or(0), c.model.sequence, c.precision)]
        .push_back(std::log(r.predicted / r.measured));
  }
  std::vector<std::vector<double>> errors;
  for (auto& [key, list] : groups) errors.push_back(std::move(list));
  return error_correlation(errors);
}

}  // namespace k3sim
