#include "tools/planner/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/config/field_table.h"
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

const std::vector<CsvColumn>& summary_columns() {
  static const std::vector<CsvColumn> columns{
      {"step_time_s", "s", "time of one training step"},
      {"step_time_p95_s", "s", "95 % of outcomes lie below; spread of the kernel fits"},
      {"tokens_per_s_per_gpu", "tokens/s", "throughput of one GPU"},
      {"model_tflops_per_gpu", "TFLOP/s", "model FLOPs per second of one GPU"},
      {"mfu_pct", "%", "model FLOPs over the dense peak of the matrix precision"},
      {"hfu_pct", "%", "executed matrix FLOPs, recompute included, over the same peak"},
      {"peak_allocated_gib", "GiB", "peak handed out by the framework's allocator, fullest GPU"},
      {"peak_reserved_gib", "GiB", "peak held by the process, fullest GPU"},
      {"capacity_gib", "GiB", "memory of one GPU", "profile"},
      {"fits", "text", "true when every GPU and every node's host memory suffices"},
      {"bubble_pct", "%", "share of the step that pipeline ranks wait for each other"},
      {"exposed_tp_s", "s", "exposed tensor-parallel communication, mean over pipeline ranks"},
      {"exposed_cp_s", "s", "exposed context-parallel communication"},
      {"exposed_ep_s", "s", "exposed expert all-to-all"},
      {"exposed_pp_s", "s", "exposed pipeline transfers"},
      {"exposed_dp_s", "s", "exposed gradient reduction and parameter gather"},
      {"exposed_offload_s", "s", "waiting for copies to or from host memory"},
      {"compute_s", "s", "kernels that do model work"},
      {"recompute_s", "s", "forward kernels run again in backward"},
      {"optimizer_s", "s", "optimizer step"},
      {"host_bound_s", "s", "waiting for kernel launches"},
      {"imbalance_s", "s", "end-of-step synchronisation"},
      {"goodput_pct", "%", "useful share of wall time under failures (Daly)"},
      {"cost_usd_per_step", "USD", "price of the GPUs for one step", "prediction; price of scenario or profile"},
      {"provenance", "text", "worst tier of a cost used", "profile"},
      {"assumed_pct", "%", "share of the work on costs without calibration", "profile"},
      {"gpus", "1", "number of GPUs", "scenario"},
      {"fingerprint", "text", "of the simulated events: equal results have equal ones"}};
  return columns;
}

std::vector<CsvColumn> axis_columns(const SearchSpace& space) {
  std::vector<CsvColumn> out;
  for (const SpaceAxis& axis : space.axes()) {
    CsvColumn c{axis.key, "1", "settings that go together", "scenario"};
    for (const Field& f : scenario_fields())
      if (f.path == axis.key) c.what = f.description;
    for (const SpaceValue& v : axis.values)
      if (v.text.find_first_not_of("0123456789.-") != std::string::npos) c.unit = "text";
    out.push_back(std::move(c));
  }
  return out;
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
