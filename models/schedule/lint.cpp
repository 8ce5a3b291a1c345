// Runs the checks in order and words the answer: the proof, or the failing prefix drawn.
// The drawn prefix holds only what the failure needs: the ranks involved, each up to its failing action.
// Source: issue 5 ("a proof or the shortest failing prefix, drawn").
#include "models/schedule/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/schedule/draw.h"
#include "models/schedule/timeline.h"

namespace k3sim {

namespace {
std::string proof_text(const Schedule& s, const LintReport& report) {
  const auto [least, most] = std::minmax_element(report.peak_activations.begin(), report.peak_activations.end());
  std::string out = fmt::format(
      "valid: all {} actions of {} ranks run to the end in an order that respects every dependency, so there is no "
      "deadlock\nmemory: at most {} activations (stage x micro-batch) on every rank",
      report.actions, s.ranks, *most);
  if (*least != *most) {
    out += "; by rank:";
    for (std::size_t r = 0; r < report.peak_activations.size() && r < 64; ++r)
      out += fmt::format(" {}", report.peak_activations[r]);
    if (report.peak_activations.size() > 64) out += " ...";
  }
  for (const std::string& note : report.notes) out += "\nnote: " + note;
  return out + "\n";
}

bool has_action(const Schedule& s, ActionKind kind) {
  return std::any_of(s.actions.begin(), s.actions.end(), [&](const auto& row) {
    return std::any_of(row.begin(), row.end(), [&](const Action& a) { return a.kind == kind; });
  });
}

// Failing position per rank; the smallest index of a rank wins.
std::string failing_text(const Schedule& s, const std::vector<ScheduleProblem>& problems) {
  std::map<int, int> failing;
  for (const ScheduleProblem& p : problems)
    if (p.rank >= 0 && p.rank < s.ranks) {
      const auto [it, fresh] = failing.emplace(p.rank, p.index);
      if (!fresh) it->second = std::min(it->second, p.index);
      if (failing.size() >= 8) break;
    }
  return failing.empty() ? "" : draw_prefix(s, failing);
}

void report_deadlock(const Schedule& s, const lint::Execution& run, LintReport& report) {
  const std::vector<std::string> lines = lint::explain_cycle(s, run);
  std::string text = "deadlock:";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto rank = static_cast<std::size_t>(run.cycle[i]);
    report.problems.push_back({run.cycle[i], static_cast<int>(run.next[rank]), "deadlock: " + lines[i]});
    text += "\n  " + lines[i];
  }
  if (lines.size() > 1) text += "\n  ... and so on in a circle";
  report.text = text + "\nshortest failing prefix (>x< cannot start):\n" + failing_text(s, report.problems);
}

void count_peaks(const Schedule& s, LintReport& report) {
  const Timeline t = time_schedule(s, ScheduleCosts{.stages = {StageTimes{}}});
  for (const RankTimeline& r : t.ranks) report.peak_activations.push_back(r.peak_activations);
}
}  // namespace

LintReport lint_schedule(const Schedule& schedule) {
  LintReport report;
  lint::Findings findings;
  for (auto* check : {lint::check_placement, lint::check_counts, lint::check_transfers, lint::check_phases}) {
    check(schedule, findings);
    if (!findings.problems.empty()) break;
  }
  report.problems = std::move(findings.problems);
  if (!report.problems.empty()) {
    for (const ScheduleProblem& p : report.problems)
      report.text += p.rank < 0 ? p.what + "\n" : fmt::format("rank {} at {}: {}\n", p.rank, p.index, p.what);
    const std::string drawn = failing_text(schedule, report.problems);
    if (!drawn.empty()) report.text += "shortest failing prefix (>x< is wrong):\n" + drawn;
    return report;
  }
  const lint::Execution run = lint::execute(schedule);
  report.actions = run.executed;
  if (!run.cycle.empty()) {
    report_deadlock(schedule, run, report);
    return report;
  }
  report.valid = true;
  count_peaks(schedule, report);
  if (has_action(schedule, ActionKind::kUnshard) && !has_action(schedule, ActionKind::kReduceGrad))
    report.notes.emplace_back(
        "no REDUCE_GRAD: the file gathers parameters but reduces no gradients; older PyTorch does that in the last "
        "backward, the current one only where the file says so");
  report.text = proof_text(schedule, report);
  return report;
}

}  // namespace k3sim
