#include "tools/planner/candidates.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "sim/base/error.h"
#include "sim/graph/longest_path.h"

namespace k3sim {

namespace {

// Counts through the space like an odometer and keeps the scenario in step.
class Odometer {
 public:
  explicit Odometer(const SearchSpace& space)
      : space_(space), scenario_(space.base()), choice_(space.axes().size(), 0) {}
  const Scenario& scenario() const { return scenario_; }
  const std::vector<int>& choice() const { return choice_; }
  std::int64_t model_changes() const { return model_changes_; }
  void advance() {
    for (std::size_t a = choice_.size(); a-- > 0;) {
      const bool carry = ++choice_[a] == static_cast<int>(space_.axes()[a].values.size());
      if (carry) choice_[a] = 0;
      space_.apply(a, choice_[a], scenario_);
      if (space_.axes()[a].key == "model" || space_.axes()[a].key == "variants") ++model_changes_;
      if (!carry) return;
    }
  }

 private:
  const SearchSpace& space_;
  Scenario scenario_;
  std::vector<int> choice_;
  std::int64_t model_changes_ = 0;
};

}  // namespace

std::vector<Candidate> generate_candidates(const SearchSpace& space, CostTables& tables, bool tp_across_nodes,
                                           Reasons& reasons) {
  std::vector<Candidate> out;
  Odometer at(space);
  LayoutRules rules(at.scenario().model);
  std::int64_t model = 0;
  for (std::int64_t i = 0; i < space.size(); ++i) {
    if (at.model_changes() != model) model = at.model_changes(), rules = LayoutRules(at.scenario().model);
    Candidate c;
    c.index = i;
    const Reason r = rules.check(at.scenario(), c.layout, tp_across_nodes);
    reasons[static_cast<std::size_t>(i)] = r;
    if (r == Reason::ok) {
      c.table = tables.key(at.choice(), at.scenario());
      out.push_back(c);
    }
    at.advance();
  }
  return out;
}

void bound_candidates(const SearchSpace& space, const CostTables& tables, Objective objective, int threads,
                      std::vector<Candidate>& candidates, Reasons& verdicts) {
  StageMaps maps;
  std::vector<Reason> reasons(candidates.size(), Reason::ok);
  constexpr std::size_t kSlice = 512;  // enough that starting a slice costs nothing
  in_parallel((candidates.size() + kSlice - 1) / kSlice, threads, [&](std::size_t slice) {
    Scenario s = space.base();
    for (std::size_t i = slice * kSlice; i < std::min(candidates.size(), (slice + 1) * kSlice); ++i) {
      Candidate& c = candidates[i];
      const std::vector<int> choice = space.choice(c.index);
      for (std::size_t a = 0; a < choice.size(); ++a) space.apply(a, choice[a], s);
      const LayerTable& table = tables.table(c.table);
      try {
        const StageMap& map = maps.get(s, c.layout);
        const Bytes capacity = s.cluster.memory_override.value_or(table.machine->gpu.usable_memory);
        if (least_memory(s, map, c.layout, c.chunks->costs) > capacity) reasons[i] = Reason::memory_bound;
        c.bound = least_step_seconds(map, c.layout, c.chunks->costs) *
                  objective_factor(objective, s, *table.machine, table.flops_per_token);
      } catch (const ConfigError&) {
        reasons[i] = Reason::schedule;
      }
    }
  });
  std::vector<Candidate> left;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    verdicts[static_cast<std::size_t>(candidates[i].index)] = reasons[i];
    if (reasons[i] == Reason::ok) left.push_back(candidates[i]);
  }
  std::sort(left.begin(), left.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.bound, a.index) < std::pair(b.bound, b.index);
  });
  candidates = std::move(left);
}

void vary_costs(Ranked& ranked) {
  const StepPrediction& p = ranked.evaluation.prediction;
  if (!p.graph || !p.times) return;
  const TaskGraph& g = p.graph->built.graph;
  std::vector<Time> durations(g.task_count());
  const auto step = [&](double factor) {
    for (std::size_t t = 0; t < durations.size(); ++t) {
      const auto kind = static_cast<StepTask>(g.kind(TaskId(static_cast<std::uint32_t>(t))));
      const bool kernel = kind == StepTask::forward || kind == StepTask::backward || kind == StepTask::weight_grad ||
                          kind == StepTask::recompute || kind == StepTask::optimizer || kind == StepTask::vision;
      const Time simulated = p.times->finish[t] - p.times->start[t];
      durations[t] = kernel ? scale(simulated, factor) : simulated;
    }
    return step_period(*p.graph, longest_path(g, durations)).seconds();
  };
  ranked.step_low = step(0.95);
  ranked.step_high = step(1.05);
}

void mark_pareto(std::vector<Ranked>& ranked) {
  const auto axes = [](const Ranked& r) {
    const StepSummary& s = r.evaluation.prediction.summary;
    return std::array<double, 4>{r.value, -(s.capacity - s.peak_reserved).as_double(),
                                 static_cast<double>(r.evaluation.scenario.cluster.gpus()),
                                 r.step_high / s.step.seconds()};
  };
  for (Ranked& r : ranked) {
    r.pareto = std::none_of(ranked.begin(), ranked.end(), [&](const Ranked& other) {
      const auto a = axes(other), b = axes(r);
      bool no_worse = true, better = false;
      for (std::size_t i = 0; i < a.size(); ++i) no_worse = no_worse && a[i] <= b[i], better = better || a[i] < b[i];
      return no_worse && better;
    });
  }
}

}  // namespace k3sim
