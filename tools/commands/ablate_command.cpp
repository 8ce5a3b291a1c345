// k3sim ablate: what every mechanism buys, singly and cumulatively, as a waterfall. Source: product-spec section 2.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/planner/ablation.h"
#include "tools/planner/sensitivity.h"
#include "tools/result_pages/ablation_page.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario, out, detail = "kernel";
  std::vector<std::string> set;
  bool allow_assumed = false, sensitivity = false;
};

std::string waterfall(const Ablation& a, bool cumulative, bool colour) {
  TextTable t({cumulative ? "off, one after the other" : "off", "step s", "change s", "MFU %", "change", "GiB",
               "change", "fits"});
  t.add({"scenario", fmt::format("{:.3f}", a.base.step.seconds()), "", fmt::format("{:.2f}", a.base.mfu_pct), "",
         fmt::format("{:.1f}", a.base.peak_reserved.gibibytes()), "", a.base.fits ? "yes" : "no"});
  for (const AblationRow& r : a.rows) {
    if (r.cumulative != cumulative) continue;
    if (r.reason != Reason::ok && r.reason != Reason::memory) {
      t.add({r.name + ": " + r.text});
      continue;
    }
    t.add({r.name, fmt::format("{:.3f}", r.summary.step.seconds()), fmt::format("{:+.3f}", r.step_change_s),
           fmt::format("{:.2f}", r.summary.mfu_pct), fmt::format("{:+.2f}", r.mfu_change),
           fmt::format("{:.1f}", r.summary.peak_reserved.gibibytes()), fmt::format("{:+.1f}", r.memory_change_gib),
           r.summary.fits ? "yes" : "no"});
  }
  return t.to_text(colour);
}

nlohmann::ordered_json ablation_json(const Ablation& a) {
  nlohmann::ordered_json j{{"step_time_s", a.base.step.seconds()},
                           {"mfu_pct", a.base.mfu_pct},
                           {"peak_reserved_gib", a.base.peak_reserved.gibibytes()}};
  for (const AblationRow& r : a.rows)
    j["rows"].push_back({{"mechanism", r.name},
                         {"mode", r.cumulative ? "cumulative" : "single"},
                         {"reason", to_string(r.reason)},
                         {"step_time_s", r.summary.step.seconds()},
                         {"step_change_s", r.step_change_s},
                         {"mfu_change", r.mfu_change},
                         {"memory_change_gib", r.memory_change_gib},
                         {"fits", r.summary.fits},
                         {"note", r.text}});
  return j;
}

std::string sensitivity_text(const std::vector<Sensitivity>& list, bool colour) {
  TextTable t({"input", "10 % worse: step %", "10 % better: step %"});
  for (const Sensitivity& s : list)
    t.add({s.input, fmt::format("{:+.2f}", s.step_change_pct), fmt::format("{:+.2f}", s.step_gain_pct)});
  return t.to_text(colour);
}

int run(const Options& o, CommandContext& context) {
  MachineStore machines;
  EvaluateOptions options;
  options.allow_assumed = o.allow_assumed;
  options.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  const Ablation a = ablate(o.scenario, o.set, machines, options);
  std::vector<Sensitivity> inputs;
  if (o.sensitivity) {
    const Scenario s = load_scenario(o.scenario, o.set);
    StepOptions step;
    step.allow_assumed = o.allow_assumed;
    step.graph.detail = options.detail;
    inputs = sensitivities(s, machines.get(s), step);
  }
  if (!o.out.empty()) {
    OutputFolder out(o.out);
    add_results(out, {{"ablation.csv", ablation_table(a)}},
                ablation_page(load_scenario(o.scenario, o.set), a, inputs, context.command));
    out.commit();
  }
  if (context.json) {
    nlohmann::ordered_json j = ablation_json(a);
    for (const Sensitivity& s : inputs)
      j["sensitivity"].push_back(
          {{"input", s.input}, {"worse_pct", s.step_change_pct}, {"better_pct", s.step_gain_pct}});
    context.out << j.dump(2) << "\n";
    return 0;
  }
  context.out << waterfall(a, false, context.colour()) << "\n" << waterfall(a, true, context.colour());
  if (o.sensitivity) context.out << "\n" << sensitivity_text(inputs, context.colour());
  return 0;
}

}  // namespace

void add_ablate_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "ablate", "each mechanism off, singly and cumulatively",
                            "k3sim ablate k3_2048_h800 --sensitivity");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--out", o->out, "folder for ablation.csv and report.html");
  c->add_option("--detail", o->detail, "step or kernel (default)")->check(CLI::IsMember({"step", "kernel"}));
  c->add_flag("--sensitivity", o->sensitivity, "also what 10 % on each input does to the step");
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
