#include "tools/planner/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/failure/goodput.h"
#include "sim/base/error.h"
#include "tools/planner/layout_rules.h"

namespace k3sim {

namespace {

std::string one_line(const ConfigError& e) {
  if (e.problems().empty()) return e.what();
  const Problem& p = e.problems().front();
  return p.key.empty() ? p.what : p.key + ": " + p.what;
}

std::string number(double v) {
  return fmt::format("{:.9g}", v);
}

}  // namespace

const Machine& MachineStore::get(const Scenario& scenario) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cache_.get(scenario);
}

Evaluation evaluate(Scenario scenario, MachineStore& machines, const EvaluateOptions& options) {
  Evaluation out;
  out.scenario = std::move(scenario);
  try {
    StepOptions step;
    step.graph.detail = options.detail;
    step.keep_graph = options.keep_graph;
    step.allow_assumed = options.allow_assumed;
    step.reuse = options.reuse;
    step.reuse.moe = &machines.moe();
    out.prediction = predict_step(out.scenario, machines.get(out.scenario), step);
    if (!out.prediction.summary.fits) {
      out.reason = Reason::memory;
      out.text = fmt::format("short by {:.2f} GiB", out.prediction.summary.short_by.gibibytes());
    }
  } catch (const ConfigError& e) {
    out.text = one_line(e);
    out.reason = out.text.find("no calibration") != std::string::npos ? Reason::unanchored : Reason::failed;
  }
  return out;
}

Evaluation evaluate(const SearchSpace& space, std::int64_t index, MachineStore& machines,
                    const EvaluateOptions& options) {
  Evaluation out;
  Scenario fast = space.base();
  const std::vector<int> choice = space.choice(index);
  for (std::size_t a = 0; a < choice.size(); ++a) space.apply(a, choice[a], fast);
  Layout layout;
  out.reason = LayoutRules(fast.model).check(fast, layout, options.tp_across_nodes);
  if (out.reason != Reason::ok) {
    out.text = explain(out.reason);
    out.scenario = std::move(fast);
    return out;
  }
  try {
    out = evaluate(space.scenario(index), machines, options);
  } catch (const ConfigError& e) {
    out.reason = Reason::no_effect;
    out.text = one_line(e);
    out.scenario = std::move(fast);
  }
  return out;
}

const std::vector<std::string>& summary_columns() {
  static const std::vector<std::string> columns{"step_time_s",
                                                "step_time_p95_s",
                                                "tokens_per_s_per_gpu",
                                                "model_tflops_per_gpu",
                                                "mfu_pct",
                                                "hfu_pct",
                                                "peak_allocated_gib",
                                                "peak_reserved_gib",
                                                "capacity_gib",
                                                "fits",
                                                "bubble_pct",
                                                "exposed_tp_s",
                                                "exposed_cp_s",
                                                "exposed_ep_s",
                                                "exposed_pp_s",
                                                "exposed_dp_s",
                                                "exposed_offload_s",
                                                "compute_s",
                                                "recompute_s",
                                                "optimizer_s",
                                                "host_bound_s",
                                                "imbalance_s",
                                                "goodput_pct",
                                                "cost_usd_per_step",
                                                "provenance",
                                                "assumed_pct",
                                                "gpus",
                                                "fingerprint"};
  return columns;
}

std::vector<std::string> summary_cells(const Scenario& scenario, const StepSummary& s) {
  const RankBreakdown& b = s.mean;
  const int gpus = scenario.cluster.gpus();
  std::vector<std::string> out{number(s.step.seconds()),
                               number(s.step_p95.seconds()),
                               number(s.tokens_per_s_per_gpu),
                               number(s.model_tflops_per_gpu),
                               number(s.mfu_pct),
                               number(s.hfu_pct),
                               number(s.peak_allocated.gibibytes()),
                               number(s.peak_reserved.gibibytes()),
                               number(s.capacity.gibibytes()),
                               s.fits ? "true" : "false",
                               number(s.bubble_pct)};
  for (Time t : {b.tp, b.cp, b.ep, b.pp, b.dp, b.offload, b.compute, b.recompute, b.optimizer, b.host, b.wait})
    out.push_back(number(t.seconds()));
  out.push_back(number(100.0 * daly_goodput(gpus).share));
  out.push_back(number(s.cost_usd_per_step));
  out.emplace_back(to_string(s.provenance));
  out.push_back(number(s.assumed_pct));
  out.push_back(fmt::format("{}", gpus));
  out.push_back(fmt::format("{:016x}", s.fingerprint));
  return out;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& c : cells) quoted.push_back(csv_cell(c));
  return fmt::format("{}\r\n", fmt::join(quoted, ","));
}

}  // namespace k3sim
