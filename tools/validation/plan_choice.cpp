// Regret and rank correlation over groups of layouts. Source: plan_choice.h.
#include "tools/validation/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace k3sim {

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double agree = 0, pairs_a = 0, pairs_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double x = a[i] - a[j], y = b[i] - b[j];
      if (x != 0 && y != 0) agree += x * y > 0 ? 1 : -1;
      pairs_a += x != 0;
      pairs_b += y != 0;
    }
  return pairs_a > 0 && pairs_b > 0 ? agree / std::sqrt(pairs_a * pairs_b) : 0.0;
}

PlanChoice plan_choice(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows, std::size_t least) {
  std::map<std::string, const Case*> by_id;
  for (const Case& c : cases) by_id[c.id] = &c;
  std::map<std::string, std::vector<const ValidationRow*>> groups;
  for (const ValidationRow& r : rows) {
    if (r.kind != "model" || r.status != "predicted") continue;
    const Case& c = *by_id.at(r.id);
    groups[fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", c.group, c.model.name, c.model.layers, c.gpu, c.gpus,
                       c.gbs.value_or(0), c.model.sequence, c.precision)]
        .push_back(&r);
  }
  PlanChoice out;
  double regret_sum = 0, tau_sum = 0;
  for (const auto& [key, members] : groups) {
    if (members.size() < least) continue;
    const auto faster = [](auto field) {
      return [field](const ValidationRow* x, const ValidationRow* y) { return x->*field < y->*field; };
    };
    const auto* chosen = *std::min_element(members.begin(), members.end(), faster(&ValidationRow::predicted));
    const auto* best = *std::min_element(members.begin(), members.end(), faster(&ValidationRow::measured));
    const double regret = 100.0 * (chosen->measured / best->measured - 1.0);
    std::vector<double> measured, predicted;
    for (const ValidationRow* r : members) measured.push_back(r->measured), predicted.push_back(r->predicted);
    ++out.groups;
    out.layouts += static_cast<int>(members.size());
    regret_sum += regret;
    tau_sum += kendall_tau(measured, predicted);
    out.worst_regret_pct = std::max(out.worst_regret_pct, regret);
  }
  if (out.groups == 0) return out;
  out.mean_regret_pct = regret_sum / out.groups;
  out.mean_tau = tau_sum / out.groups;
  return out;
}

}  // namespace k3sim
