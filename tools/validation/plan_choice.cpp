// Regret and rank correlation over groups of layouts. Source: plan_choice.h.
#include "tools/validation/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/validation/case_scenario.h"

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

namespace {

struct Layout {
  std::string id;  // of its first run
  double measured = 0, predicted = 0;
  int runs = 0;
  void add(const ValidationRow& r) {
    if (runs++ == 0) id = r.id;
    measured += (r.measured - measured) / runs;
    predicted += (r.predicted - predicted) / runs;
  }
};
using Layouts = std::map<std::string, Layout>;  // by what a user chooses

// Sharding as it is, not as its source words it: "within 8 ranks" of 8 is over all of them.
std::string sharding(const Case& c) {
  const CaseScenario built = case_scenario(c);
  if (!built.scenario) return c.parallel.optimizer;
  const OptimizerConfig& o = built.scenario->optimizer;
  const int ranks = built.scenario->parallel.dp * built.scenario->parallel.cp;
  const int group = o.shard_group >= ranks ? 0 : o.shard_group;
  return fmt::format("zero {} over {}, reshard {}", o.zero, group, o.reshard_after_forward);
}

std::string chosen_settings(const Case& c) {
  const CaseParallel& p = c.parallel;
  std::string out = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", c.mbs.value_or(0), sharding(c), p.sequence_parallel,
                                c.recompute, c.schedule, c.overlap, c.dispatcher, c.method);
  for (const std::optional<int>& degree : {p.tp, p.pp, p.vpp, p.cp, p.ep, p.etp, p.dp})
    out += fmt::format("|{}", degree.value_or(0));
  return out;
}

ChoiceGroup judge(const std::string& name, const Layouts& layouts) {
  std::vector<const Layout*> members;
  for (const auto& [settings, layout] : layouts) members.push_back(&layout);
  const auto least = [&](double Layout::*field) {
    return *std::min_element(members.begin(), members.end(),
                             [field](const Layout* x, const Layout* y) { return x->*field < y->*field; });
  };
  const Layout *chosen = least(&Layout::predicted), *best = least(&Layout::measured);
  std::vector<double> measured, predicted;
  for (const Layout* r : members) measured.push_back(r->measured), predicted.push_back(r->predicted);
  return {.name = name,
          .layouts = static_cast<int>(members.size()),
          .regret_pct = 100.0 * (chosen->measured / best->measured - 1.0),
          .tau = kendall_tau(measured, predicted),
          .chosen = chosen->id,
          .best = best->id};
}

PlanChoice summarized(PlanChoice out) {
  for (const ChoiceGroup& g : out.by_group) {
    ++out.groups;
    out.layouts += g.layouts;
    out.mean_regret_pct += g.regret_pct;
    out.mean_tau += g.tau;
    out.worst_regret_pct = std::max(out.worst_regret_pct, g.regret_pct);
  }
  if (out.groups > 0) out.mean_regret_pct /= out.groups, out.mean_tau /= out.groups;
  std::stable_sort(out.by_group.begin(), out.by_group.end(),
                   [](const ChoiceGroup& a, const ChoiceGroup& b) { return a.regret_pct > b.regret_pct; });
  return out;
}

}  // namespace

PlanChoice plan_choice(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows, std::size_t least) {
  std::map<std::string, const Case*> by_id;
  for (const Case& c : cases) by_id[c.id] = &c;
  std::map<std::string, Layouts> groups;
  for (const ValidationRow& r : rows) {
    if (r.kind != "model" || r.status != "predicted") continue;
    const Case& c = *by_id.at(r.id);
    groups[fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", c.group, c.model.name, c.model.layers, c.gpu, c.gpus,
                       c.gbs.value_or(0), c.model.sequence, c.precision)][chosen_settings(c)]
        .add(r);
  }
  PlanChoice out;
  for (const auto& [name, members] : groups)
    if (members.size() >= least) out.by_group.push_back(judge(name, members));
  return summarized(std::move(out));
}

}  // namespace k3sim
