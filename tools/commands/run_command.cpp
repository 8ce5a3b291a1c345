// k3sim run: predicts one training step of a scenario. Source: product-spec sections 2 and 4.
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>
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
#include "tools/report/mechanism_tables.h"
#include "tools/report/run_report.h"
#include "tools/report/run_tables.h"
#include "tools/report/step_trace.h"
#include "tools/report/summary_json.h"
#include "tools/report/text_summary.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario, out, detail = "kernel", trace_ranks;
  std::vector<std::string> set, unfold;
  bool allow_assumed = false, require_fit = false;
};

GroupKind unfold_dimension(const std::string& name) {
  if (name == "tp") return GroupKind::tp;
  if (name == "cp") return GroupKind::cp;
  if (name == "dp" || name == "ep") return GroupKind::dp;  // expert groups lie inside tp x cp x dp
  throw UsageError("--unfold: unknown dimension '" + name + "'; " + did_you_mean(name, {"tp", "cp", "ep", "dp"}));
}

StepOptions step_options(const Options& o) {
  StepOptions s;
  s.allow_assumed = o.allow_assumed;
  s.keep_graph = !o.out.empty();
  s.graph.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  for (const std::string& d : o.unfold) s.graph.unfold.push_back(unfold_dimension(d));
  return s;
}

// Above half a million slices the JSON trace keeps actions and transfers only, and all slices go to Perfetto's own
// form.
void add_trace(OutputFolder& out, const StepPrediction& p, const std::string& ranks) {
  StepTraceOptions options{.ranks = parse_ranks(ranks, p.plan->placement->world()), .kernels = true};
  Trace trace = step_trace(p, options);
  if (trace.slices.size() > kMaxJsonSlices) {
    out.add("trace.perfetto.gz", gzip(perfetto_proto(trace)));
    options.kernels = false;
    trace = step_trace(p, options);
  }
  out.add("trace.json.gz", gzip(chrome_json(trace)));
}

std::string command_line(const Options& o) {
  std::string out = "k3sim run " + o.scenario;
  for (const std::string& s : o.set) out += " --set " + s;
  if (o.detail != "kernel") out += " --detail " + o.detail;
  for (const std::string& d : o.unfold) out += " --unfold " + d;
  if (o.allow_assumed) out += " --allow-assumed";
  return out;
}

void write_outputs(const Options& o, const Scenario& scenario, const StepPrediction& p) {
  OutputFolder out(o.out);
  const CsvTable ranks = ranks_table(p), breakdown = breakdown_table(p), memory = memory_table(p);
  out.add("summary.json", summary_json(scenario, p));
  out.add("ranks.csv", ranks.text());
  out.add("breakdown.csv", breakdown.text());
  out.add("memory.csv", memory.text());
  const CsvTable timeline = memory_timeline_table(p), overlap = overlap_table(p), context = context_ranks_table(p);
  out.add("memory_timeline.csv", timeline.text());
  out.add("overlap.csv", overlap.text());
  out.add("context_ranks.csv", context.text());
  out.add("data_dictionary.csv", data_dictionary_csv({{"ranks.csv", &ranks},
                                                      {"breakdown.csv", &breakdown},
                                                      {"memory.csv", &memory},
                                                      {"memory_timeline.csv", &timeline},
                                                      {"overlap.csv", &overlap},
                                                      {"context_ranks.csv", &context}}));
  add_trace(out, p, o.trace_ranks);
  const std::string data = run_report({scenario, p, command_line(o), {}}).data();
  out.add("report_data.json.gz", gzip(data));
  out.add("report.html", HtmlPage::html_of(data));
  out.commit();
}

int predict(const Options& o, CommandContext& context) {
  Scenario scenario = load_scenario(o.scenario, o.set);
  const Machine machine = load_machine(scenario);
  const StepPrediction p = predict_step(scenario, machine, step_options(o));
  if (scenario.parallel.dp == 0)
    scenario.parallel.dp =
        scenario.cluster.gpus() / (scenario.parallel.tp * scenario.parallel.pp * scenario.parallel.cp);
  if (!o.out.empty()) write_outputs(o, scenario, p);
  if (context.json)
    context.out << summary_json(scenario, p);
  else
    context.out << text_summary(scenario, p, context.colour());
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
  c->add_option("--unfold", o->unfold, "dimensions to simulate rank by rank: tp, cp, ep, dp")->delimiter(',');
  c->add_option("--trace-ranks", o->trace_ranks,
                "global ranks in the trace, such as 0,8-15 or all (default: one per pipeline stage)");
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  c->add_flag("--require-fit", o->require_fit, "exit with 1 when the step does not fit into memory");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
