// k3sim diff: why two scenarios differ in step time and memory. Source: product-spec section 2.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/planner/difference.h"
#include "tools/planner/evaluate.h"
#include "tools/result_pages/difference_page.h"

namespace k3sim {

namespace {

struct Options {
  std::string a, b, out, detail = "kernel";
  std::vector<std::string> set_a, set_b;
  bool allow_assumed = false;
};

Evaluation predict(const std::string& path, const std::vector<std::string>& set, const Options& o,
                   MachineStore& machines) {
  EvaluateOptions options;
  options.keep_graph = true;
  options.allow_assumed = o.allow_assumed;
  options.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  Evaluation e = evaluate(load_scenario(path, set), machines, options);
  if (!e.simulated()) throw ConfigError(e.text, {}, {path, 0, 0});
  return e;
}

std::string part_table(const char* unit, const char* what, const std::vector<Difference>& list, bool colour) {
  TextTable t({what, fmt::format("before {}", unit), "after", "change"});
  for (const Difference& d : list)
    t.add(
        {d.part, fmt::format("{:.3f}", d.before), fmt::format("{:.3f}", d.after), fmt::format("{:+.3f}", d.change())});
  Difference sum{"sum", 0, 0};
  for (const Difference& d : list) sum.before += d.before, sum.after += d.after;
  t.add({sum.part, fmt::format("{:.3f}", sum.before), fmt::format("{:.3f}", sum.after),
         fmt::format("{:+.3f}", sum.change())});
  return t.to_text(colour);
}

nlohmann::ordered_json parts_json(const std::vector<Difference>& list) {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const Difference& d : list)
    j.push_back({{"part", d.part}, {"before", d.before}, {"after", d.after}, {"change", d.change()}});
  return j;
}

int run(const Options& o, CommandContext& context) {
  MachineStore machines;
  const Evaluation a = predict(o.a, o.set_a, o, machines), b = predict(o.b, o.set_b, o, machines);
  const StepDifference d = difference(a.prediction, b.prediction, memory_owners(a.prediction, machines.get(a.scenario)),
                                      memory_owners(b.prediction, machines.get(b.scenario)));
  if (!o.out.empty()) {
    OutputFolder out(o.out);
    add_results(out, {{"diff.csv", difference_table(d)}},
                difference_page({a.scenario, b.scenario, a.prediction, b.prediction, context.command}, d));
    out.commit();
  }
  if (context.json) {
    const nlohmann::ordered_json j{{"step_before_s", d.step_before},
                                   {"step_after_s", d.step_after},
                                   {"time_s", parts_json(d.time)},
                                   {"critical_path_s", parts_json(d.critical)},
                                   {"slowest_stage", {{"before", d.slowest_before}, {"after", d.slowest_after}}},
                                   {"memory_gib", parts_json(d.memory)}};
    context.out << j.dump(2) << "\n";
    return 0;
  }
  context.out << fmt::format("step {:.3f} s -> {:.3f} s ({:+.2f} %)\n\n", d.step_before, d.step_after,
                             100.0 * (d.step_after / d.step_before - 1.0))
              << part_table("s", "critical path", d.critical, context.colour())
              << fmt::format("  slowest stage: pipeline rank {} -> {}\n\n", d.slowest_before, d.slowest_after)
              << part_table("s", "mean rank", d.time, context.colour()) << "\n"
              << part_table("GiB", "memory of the fullest rank", d.memory, context.colour());
  return 0;
}

}  // namespace

void add_diff_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "diff", "explain the difference of two scenarios",
                            "k3sim diff k3_2048_h800 k3_2048_h800 --set-b parallel.vpp=1");
  c->add_option("before", o->a, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  c->add_option("after", o->b, "the other one")->required();
  c->add_option("--set-a", o->set_a, "override one key of the first")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  c->add_option("--set-b", o->set_b, "override one key of the second")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  c->add_option("--out", o->out, "folder for diff.csv and report.html");
  c->add_option("--detail", o->detail, "step or kernel (default)")->check(CLI::IsMember({"step", "kernel"}));
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
