#include "tools/planner/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/graph/critical_path.h"
#include "tools/planner/evaluate.h"

namespace k3sim {

namespace {

void largest_first(std::vector<Difference>& list) {
  std::erase_if(list, [](const Difference& d) { return d.before == 0 && d.after == 0; });
  std::stable_sort(list.begin(), list.end(), [](const Difference& a, const Difference& b) {
    return std::abs(a.change()) > std::abs(b.change());
  });
}

std::vector<double> critical_seconds(const StepPrediction& p) {
  std::vector<double> out(kStepTasks, 0.0);
  if (!p.graph || !p.times) return out;
  const CriticalPath path = critical_path(p.graph->built.graph, *p.times);
  for (std::size_t k = 0; k < path.time_by_kind.size() && k < out.size(); ++k) out[k] = path.time_by_kind[k].seconds();
  return out;
}

const RankMemory& fullest(const StepPrediction& p) {
  return *std::max_element(p.memory.begin(), p.memory.end(), [](const RankMemory& a, const RankMemory& b) {
    return a.reserved + a.outside < b.reserved + b.outside;
  });
}

std::vector<Difference> memory_parts(const RankMemory& a, const RankMemory& b) {
  std::vector<Difference> out;
  const auto add = [&](const char* part, Bytes before, Bytes after) {
    out.push_back({part, before.gibibytes(), after.gibibytes()});
  };
  add("weights", a.states.weights, b.states.weights);
  add("gradients", a.states.gradients, b.states.gradients);
  add("optimizer states", a.states.optimizer, b.states.optimizer);
  add("kept activations", a.activations, b.activations);
  add("transient tensors", a.transient, b.transient);
  add("staging buffers", a.staging, b.staging);
  add("outside the allocator", a.outside, b.outside);
  const auto rest = [](const RankMemory& m) {
    return (m.reserved + m.outside - m.states.gpu() - m.activations - m.transient - m.staging - m.outside);
  };
  add("allocator overhead", rest(a), rest(b));
  return out;
}

}  // namespace

StepDifference difference(const StepPrediction& before, const StepPrediction& after) {
  StepDifference d;
  d.step_before = before.summary.step.seconds();
  d.step_after = after.summary.step.seconds();
  const std::pair<const char*, Time RankBreakdown::*> parts[] = {{"compute", &RankBreakdown::compute},
                                                                 {"recompute", &RankBreakdown::recompute},
                                                                 {"optimizer", &RankBreakdown::optimizer},
                                                                 {"exposed tp", &RankBreakdown::tp},
                                                                 {"exposed cp", &RankBreakdown::cp},
                                                                 {"exposed all-to-all (ep)", &RankBreakdown::ep},
                                                                 {"pipeline transfers", &RankBreakdown::pp},
                                                                 {"exposed dp", &RankBreakdown::dp},
                                                                 {"offload stall", &RankBreakdown::offload},
                                                                 {"bubble and slower stages", &RankBreakdown::bubble},
                                                                 {"host", &RankBreakdown::host},
                                                                 {"end of step", &RankBreakdown::wait}};
  for (const auto& [name, field] : parts)
    d.time.push_back({name, (before.summary.mean.*field).seconds(), (after.summary.mean.*field).seconds()});
  const std::vector<double> a = critical_seconds(before), b = critical_seconds(after);
  for (int k = 0; k < kStepTasks; ++k) {
    const auto i = static_cast<std::size_t>(k);
    d.critical.push_back({to_string(static_cast<StepTask>(k)), a[i], b[i]});
  }
  d.memory = memory_parts(fullest(before), fullest(after));
  for (std::vector<Difference>* list : {&d.time, &d.critical, &d.memory}) largest_first(*list);
  return d;
}

CsvTable difference_table(const StepDifference& d) {
  CsvTable out({{"what", "text", "step, time (mean rank), critical path or memory (fullest rank)"},
                {"part", "text", "part of it"},
                {"before_s", "s", "time in the first prediction"},
                {"after_s", "s", "time in the second one"},
                {"change_s", "s", "second minus first"},
                {"before_gib", "GiB", "memory in the first prediction"},
                {"after_gib", "GiB", "memory in the second one"},
                {"change_gib", "GiB", "second minus first"}});
  const auto rows = [&](const char* what, bool memory, const std::vector<Difference>& list) {
    for (const Difference& x : list) {
      std::vector<std::string> cells{what, x.part, "", "", "", "", "", ""};
      std::size_t at = memory ? 5 : 2;
      for (const double v : {x.before, x.after, x.change()}) cells[at++] = csv_number(v);
      out.add(std::move(cells));
    }
  };
  rows("step", false, {{"step", d.step_before, d.step_after}});
  rows("time", false, d.time);
  rows("critical path", false, d.critical);
  rows("memory", true, d.memory);
  return out;
}

}  // namespace k3sim
