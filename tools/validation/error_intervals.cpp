// Quantiles of held-out errors and their coverage by folds. Source: error_intervals.h.
#include "tools/validation/error_intervals.h"

#include <algorithm>
#include <map>

namespace k3sim {

namespace {

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

struct Run {
  int fold = 0;
  double family_ratio = 1, source_ratio = 1;  // measured over predicted
};

struct Counter {
  int n = 0, in80 = 0, in95 = 0;
  void add(double ratio, const StepErrors& b) {
    ++n;
    in80 += ratio >= b.low80 && ratio <= b.high80;
    in95 += ratio >= b.low95 && ratio <= b.high95;
  }
};

IntervalCoverage judge(const std::string& kind, const std::vector<Run>& runs) {
  IntervalCoverage out;
  out.kind = kind;
  std::vector<double> all;
  for (const Run& r : runs) all.push_back(r.family_ratio);
  out.bounds = error_bounds(all);
  Counter families, sources;
  for (int fold = 0; fold < kFamilyFolds; ++fold) {
    std::vector<double> others;
    for (const Run& r : runs)
      if (r.fold != fold) others.push_back(r.family_ratio);
    if (others.empty()) continue;
    const StepErrors bounds = error_bounds(others);
    for (const Run& r : runs)
      if (r.fold == fold) families.add(r.family_ratio, bounds), sources.add(r.source_ratio, bounds);
  }
  const auto share = [](int part, int n) { return n > 0 ? 100.0 * part / n : 0.0; };
  out.covers80_pct = share(families.in80, families.n);
  out.covers95_pct = share(families.in95, families.n);
  out.source_covers80_pct = share(sources.in80, sources.n);
  out.source_covers95_pct = share(sources.in95, sources.n);
  return out;
}

}  // namespace

StepErrors error_bounds(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  StepErrors e;
  e.low95 = quantile(ratios, 0.025);
  e.low80 = quantile(ratios, 0.1);
  e.high80 = quantile(ratios, 0.9);
  e.high95 = quantile(ratios, 0.975);
  e.runs = static_cast<int>(ratios.size());
  return e;
}

std::vector<IntervalCoverage> error_intervals(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases,
                                              const std::vector<double>& by_family,
                                              const std::vector<double>& by_source) {
  std::map<std::string, std::vector<Run>> kinds;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Case& c = cases[all[i].row];
    if (c.tier == "C") continue;
    kinds[c.model.experts > 0 ? "moe" : "dense"].push_back(
        {family_fold(all[i].family), 1.0 / (1.0 + by_family[i]), 1.0 / (1.0 + by_source[i])});
  }
  std::vector<IntervalCoverage> out;
  for (const auto& [kind, runs] : kinds) out.push_back(judge(kind, runs));
  return out;
}

}  // namespace k3sim
