// Inputs -> metrics. A scenario gives the keys of summary.json; a bare schedule is timed with F = I = W = 1 and free
// transfers, so that only the order counts:
//   makespan (slots), bubble_pct = 1 - busy / (ranks x makespan), peak activations per rank (F to the end of W).
// Source: product-spec section 4; models/schedule/timeline.h; issue 11.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "models/schedule/csv.h"
#include "models/schedule/lint.h"
#include "models/schedule/timeline.h"
#include "sim/base/error.h"
#include "tools/regress/targets.h"
#include "tools/report/sha256.h"
#include "tools/report/summary_json.h"

namespace k3sim {
namespace {

constexpr double kSlot = 1e-6;  // seconds of one action

void add(Baseline& out, const std::string& name, double value) {
  out.metrics.push_back({name, rounded_value(value)});
}

void add_step_metrics(const StepSummary& s, Baseline& out) {
  add(out, "step_time_s", s.step.seconds());
  add(out, "step_time_p95_s", s.step_p95.seconds());
  add(out, "tokens_per_s_per_gpu", s.tokens_per_s_per_gpu);
  add(out, "mfu_pct", s.mfu_pct);
  add(out, "hfu_pct", s.hfu_pct);
  add(out, "peak_allocated_gib", s.peak_allocated.gibibytes());
  add(out, "peak_reserved_gib", s.peak_reserved.gibibytes());
  add(out, "short_by_gib", s.short_by.gibibytes());
  add(out, "bubble_pct", s.bubble_pct);
  for (const BreakdownPart& part : breakdown_parts())
    add(out, fmt::format("{}_s", part.key), (s.mean.*part.field).seconds());
  add(out, "cost_usd_per_step", s.cost_usd_per_step);
  add(out, "assumed_pct", s.assumed_pct);
}

void add_ranks(const StepPrediction& p, Baseline& out) {
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    RankParts row{p.ranks[i].rank, {}};
    for (const BreakdownPart& part : breakdown_parts())
      row.parts.emplace_back(fmt::format("{}_s", part.key), rounded_value((p.ranks[i].*part.field).seconds()));
    row.parts.emplace_back("peak_allocated_gib", rounded_value(p.memory[i].allocated.gibibytes()));
    out.ranks.push_back(std::move(row));
  }
}

// The problems of an input in one line, without the place of the file (it depends on where the check runs).
std::string first_problem(const ConfigError& e) {
  const Problem& p = e.problems().front();
  return p.key.empty() ? p.what : fmt::format("{}: {}", p.key, p.what);
}

Baseline evaluate_scenario(const std::string& file) {
  Baseline out;
  out.kind = "scenario";
  try {
    const Scenario scenario = load_scenario(file);
    out.digest = scenario_digest(scenario);
    const Machine machine = load_machine(scenario);
    StepOptions options;
    options.allow_assumed = true;
    options.graph.detail = StepGraphOptions::Detail::kernel;  // the network of `run`, so that its answers are guarded
    const StepPrediction p = predict_step(scenario, machine, options);
    out.status = p.summary.fits ? "ok" : "does not fit";
    if (!p.summary.fits)
      out.reason =
          fmt::format("rank {} is short of {:.2f} GiB", p.summary.worst_memory_rank, p.summary.short_by.gibibytes());
    add_step_metrics(p.summary, out);
    add_ranks(p, out);
    out.fingerprint = fmt::format("{:016x}", p.summary.fingerprint);
  } catch (const ConfigError& e) {
    out.status = "error";
    for (const Problem& problem : e.problems())  // a schedule file that waits for itself deserves its own word
      if (problem.what.find("deadlock") != std::string::npos) out.status = "deadlock";
    out.reason = first_problem(e);
  }
  return out;
}

std::string row_hash(const std::vector<Action>& actions) {
  std::string row;
  for (const Action& a : actions) row += to_string(a) + ",";
  return sha256_hex(row).substr(0, 16);
}

void add_timeline(const Schedule& schedule, Baseline& out) {
  ScheduleCosts costs;
  costs.stages = {StageTimes{}};
  const Timeline t = time_schedule(schedule, costs);
  Time busy;
  for (const RankTimeline& r : t.ranks) busy += r.busy;
  const double makespan = t.makespan.seconds();
  add(out, "makespan", makespan / kSlot);
  add(out, "bubble_pct", 100 * (1 - busy.seconds() / (makespan * static_cast<double>(t.ranks.size()))));
  add(out, "peak_activations", t.peak_activations());
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    const RankTimeline& rank = t.ranks[r];
    RankParts row{static_cast<int>(r), {}};
    const std::pair<const char*, Time> parts[] = {{"busy", rank.busy},
                                                  {"warm_up", rank.idle.warm_up},
                                                  {"cool_down", rank.idle.cool_down},
                                                  {"communication", rank.idle.communication},
                                                  {"imbalance", rank.idle.imbalance},
                                                  {"dependency", rank.idle.dependency}};
    for (const auto& [name, time] : parts) row.parts.emplace_back(name, rounded_value(time.seconds() / kSlot));
    row.parts.emplace_back("peak_activations", rank.peak_activations);
    out.ranks.push_back(std::move(row));
  }
}

bool is_deadlock(const LintReport& lint) {
  return std::any_of(lint.problems.begin(), lint.problems.end(), [](const ScheduleProblem& p) {
    return p.what.find("deadlock") != std::string::npos || p.what.find("waits for") != std::string::npos;
  });
}

std::string problem_text(const ScheduleProblem& p) {
  if (p.rank < 0) return p.what;
  return p.index < 0 ? fmt::format("rank {}: {}", p.rank, p.what)
                     : fmt::format("rank {} at {}: {}", p.rank, p.index, p.what);
}

}  // namespace

Baseline evaluate_schedule_csv(const std::string& text, const std::string& file) {
  Baseline out;
  out.kind = "schedule";
  out.digest = sha256_hex(text);
  const CsvSchedule csv = parse_schedule_csv(text, file);
  if (!csv.problems.empty()) {
    out.status = "invalid";
    out.reason = problem_text(csv.problems.front());
    return out;
  }
  for (const std::vector<Action>& row : csv.schedule.actions) out.order.push_back(row_hash(row));
  const LintReport lint = lint_schedule(csv.schedule);
  if (!lint.valid) {
    out.status = is_deadlock(lint) ? "deadlock" : "invalid";
    out.reason = lint.problems.empty() ? lint.text : problem_text(lint.problems.front());
    return out;
  }
  add(out, "ranks", csv.schedule.ranks);
  add(out, "stages", csv.schedule.stages);
  add(out, "microbatches", csv.schedule.microbatches);
  add_timeline(csv.schedule, out);
  return out;
}

Baseline evaluate_target(const RegressTarget& target) {
  Baseline out;
  if (!target.input_exists) {
    out.status = "missing";
    out.reason = fmt::format("{} is gone", target.name);
  } else if (target.is_schedule) {
    std::ifstream in(target.input, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    out = evaluate_schedule_csv(text.str(), target.input);
  } else {
    out = evaluate_scenario(target.input);
  }
  out.scenario = target.name;
  out.version = K3SIM_VERSION;
  out.toolchain = toolchain_name();
  return out;
}

}  // namespace k3sim
