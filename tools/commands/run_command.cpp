// k3sim run: predicts one training step of a scenario. Source: product-spec sections 2 and 4.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"
#include "sim/trace/chrome_json.h"
#include "sim/trace/gzip.h"
#include "sim/trace/perfetto_proto.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/report_files.h"
#include "tools/planner/sensitivity.h"
#include "tools/report/activation_table.h"
#include "tools/report/mechanism_tables.h"
#include "tools/report/moe_tables.h"
#include "tools/report/network_summary.h"
#include "tools/report/run_report.h"
#include "tools/report/run_tables.h"
#include "tools/report/step_trace.h"
#include "tools/report/summary_json.h"
#include "tools/report/text_summary.h"
#include "tools/result_pages/ablation_page.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario, out, detail = "kernel", trace_ranks;
  std::vector<std::string> set, unfold;
  bool allow_assumed = false, require_fit = false, no_sensitivity = false;
};

GroupKind unfold_dimension(const std::string& name) {
  if (name == "tp") return GroupKind::tp;
  if (name == "cp") return GroupKind::cp;
  if (name == "dp") return GroupKind::dp;
  if (name == "ep") return GroupKind::ep;
  throw UsageError("--unfold: unknown dimension '" + name + "'; " + did_you_mean(name, {"tp", "cp", "ep", "dp"}));
}

StepOptions step_options(const Options& o) {
  StepOptions s;
  s.allow_assumed = o.allow_assumed;
  s.keep_graph = !o.out.empty();
  s.graph.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  constexpr std::int64_t kStragglerTasks = 2'000'000;  // seconds of work
  s.graph.straggler_tasks = kStragglerTasks;
  for (const std::string& d : o.unfold) s.graph.unfold.push_back(unfold_dimension(d));
  return s;
}

// Above half a million slices all of them go to Perfetto's own form, and the JSON trace keeps actions and transfers
// only, of the representatives when the listed ranks are still too many.
void add_trace(OutputFolder& out, const StepPrediction& p, const std::string& ranks) {
  StepTraceOptions options{.ranks = parse_ranks(ranks, p.plan->placement->world()), .kernels = true};
  if (const double slices = expected_slices(p, options); slices > kMaxSlices)
    throw UsageError(
        fmt::format("--trace-ranks: {} ranks would be about {:.0f} million slices, at most {:.0f} million are "
                    "written; name fewer ranks",
                    options.ranks.size(), slices / 1e6, kMaxSlices / 1e6));
  Trace trace = step_trace(p, options);
  if (trace.slices.size() > kMaxJsonSlices) {
    out.add("trace.perfetto.gz", gzip(perfetto_proto(trace)));
    options.kernels = false;
    trace = step_trace(p, options);
    options.ranks.clear();
    if (trace.slices.size() > kMaxJsonSlices) trace = step_trace(p, options);
  }
  out.add("trace.json.gz", gzip(chrome_json(trace)));
}

// One task per layer pass: shares of the step time are the same, at a fraction of the time.
std::vector<Sensitivity> sensitivity(const Options& o, const Scenario& scenario, const Machine& machine) {
  if (o.no_sensitivity) return {};
  StepOptions step;
  step.allow_assumed = o.allow_assumed;
  step.graph.detail = StepGraphOptions::Detail::step;
  return sensitivities(scenario, machine, step);
}

// summary.json of a folder also says what 10 % on each input does.
std::string summary_with(const std::string& summary, const std::vector<Sensitivity>& inputs) {
  if (inputs.empty()) return summary;
  auto j = nlohmann::ordered_json::parse(summary);
  for (const Sensitivity& s : inputs)
    j["sensitivity"].push_back({{"input", s.input}, {"worse_pct", s.step_change_pct}, {"better_pct", s.step_gain_pct}});
  return j.dump(2) + "\n";
}

void write_outputs(const Options& o, const Scenario& scenario, const Machine& machine, const StepPrediction& p,
                   const MemoryView& fullest, const CommandContext& context) {
  OutputFolder out(o.out);
  const std::vector<Sensitivity> inputs = sensitivity(o, scenario, machine);
  out.add("summary.json", summary_with(summary_json(scenario, p), inputs));
  out.add("scenario.yaml", scenario.text);  // complete, overrides included: the folder can be run and compared
  add_trace(out, p, o.trace_ranks);
  NamedTables tables{{"ranks.csv", ranks_table(p)},
                     {"breakdown.csv", breakdown_table(p)},
                     {"memory.csv", memory_table(p)},
                     {"memory_peak.csv", memory_peak_table(fullest)},
                     {"memory_curve.csv", memory_curve_table(fullest)},
                     {"memory_timeline.csv", memory_timeline_table(p)},
                     {"activation_policy.csv", activation_table(p)},
                     {"overlap.csv", overlap_table(p)},
                     {"context_ranks.csv", context_ranks_table(p)},
                     {"network.csv", network_table_csv(p.summary.network)}};
  if (p.moe.draws) {
    tables.emplace_back("expert_ranks.csv", expert_ranks_table(p));
    tables.emplace_back("expert_load.csv", expert_load_table(p, scenario.parallel.ep));
  }
  add_results(out, tables,
              run_report({scenario, p, context.command, &machine,
                          inputs.empty() ? std::optional<PageDeltas>() : sensitivity_deltas(inputs), &fullest}));
  out.commit();
}

MemoryView memory_view(const Scenario& scenario, const StepPrediction& p, const Machine& machine) {
  std::optional<StepPlan> again;
  if (!p.plan) again = make_step_plan(scenario, machine);
  const StepPlan& plan = p.plan ? *p.plan : *again;
  return {rank_memory_report(plan, machine, p.summary.worst_memory_rank), outside_parts(plan, machine)};
}

constexpr int kMostLines = 39;  // of the terminal summary

std::string summary_text(const Scenario& scenario, const StepPrediction& p, const std::optional<MemoryView>& fullest,
                         bool colour) {
  std::string text = text_summary(scenario, p, colour);
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  if (fullest) text += memory_log_text(*fullest, kMostLines - lines);
  return text;
}

bool retried(const StepPrediction& p) {
  return std::any_of(p.memory.begin(), p.memory.end(), [](const RankMemory& m) { return m.retries > 0; });
}

int predict(const Options& o, CommandContext& context) {
  Scenario scenario = load_scenario(o.scenario, o.set);
  const Machine machine = load_machine(scenario);
  const StepPrediction p = predict_step(scenario, machine, step_options(o));
  if (scenario.parallel.dp == 0)
    scenario.parallel.dp =
        scenario.cluster.gpus() / (scenario.parallel.tp * scenario.parallel.pp * scenario.parallel.cp);
  // The request log of the fullest rank costs more than the rest of a small step: only where it is shown.
  std::optional<MemoryView> fullest;
  if (!o.out.empty() || (!context.json && (p.summary.short_by > Bytes(0) || retried(p))))
    fullest = memory_view(scenario, p, machine);
  if (!o.out.empty()) write_outputs(o, scenario, machine, p, *fullest, context);
  if (context.json)
    context.out << summary_json(scenario, p);
  else
    context.out << summary_text(scenario, p, fullest, context.colour());
  if (!o.out.empty()) context.err << "report: " << o.out << "/report.html\n";
  return o.require_fit && !p.summary.fits ? 1 : 0;
}

// What only the later stages can find wrong is reported with the line of its key as well.
int run(const Options& o, CommandContext& context) {
  try {
    return predict(o, context);
  } catch (const ConfigError& e) {
    throw with_places(e, o.scenario, o.set);
  }
}

}  // namespace

void add_run_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "run", "predict one training step", "k3sim run k3_2048_h800 --out out/k3");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--out", o->out, "folder for summary.json, CSV tables, trace and report");
  c->add_option("--detail", o->detail, "step: one task per layer pass; kernel: one per kernel (default)")
      ->check(CLI::IsMember({"step", "kernel"}));
  c->add_option(
       "--unfold", o->unfold,
       "dimensions to simulate rank by rank: tp, cp, ep, dp (ep by itself where routing makes its ranks differ)")
      ->delimiter(',');
  c->add_option("--trace-ranks", o->trace_ranks,
                "global ranks in the trace, such as 0,8-15 or all (default: one per pipeline stage)");
  c->add_flag("--no-sensitivity", o->no_sensitivity, "leave out of the report what 10 % on each input does");
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  c->add_flag("--require-fit", o->require_fit, "exit with 1 when the step does not fit into memory");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
