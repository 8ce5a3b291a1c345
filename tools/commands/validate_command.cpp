// k3sim validate: predictions against published measurements, and how wrong they are.
// Source: product-spec sections 2, 6, 7.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "models/config/data_files.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/error_tables.h"
#include "tools/commands/text_table.h"
#include "tools/commands/validate_collective.h"
#include "tools/commands/validate_cross.h"
#include "tools/commands/validate_kernel.h"
#include "tools/commands/validate_schedule.h"
#include "tools/commands/validation_files.h"
#include "tools/validation/case_selection.h"
#include "tools/validation/error_correlation.h"
#include "tools/validation/model_validation.h"
#include "tools/validation/plan_choice.h"
#include "tools/validation/stack_validation.h"
#include "tools/validation/step_validation.h"

namespace k3sim {

namespace {

struct Options {
  std::vector<std::string> files;
  std::string kind = "model", network, out;
  CaseSelection only;
  bool cross_validate = false;
  int threads = 0;
};

using Rows = std::vector<const ValidationRow*>;

nlohmann::ordered_json to_json(const ValidationRow& r) {
  nlohmann::ordered_json j{{"id", r.id},     {"group", r.group},   {"tier", r.tier},     {"family", r.family},
                           {"kind", r.kind}, {"status", r.status}, {"reason", r.reason}, {"metric", r.metric}};
  const bool done = r.status == "predicted";
  j["measured"] = done ? nlohmann::ordered_json(r.measured) : nullptr;
  j["predicted"] = done ? nlohmann::ordered_json(r.predicted) : nullptr;
  j["error_pct"] = done ? nlohmann::ordered_json(r.error_pct()) : nullptr;
  j["assumptions"] = r.assumptions;
  return j;
}

nlohmann::ordered_json to_json(const ErrorSummary& s) {
  return {{"predicted", s.predicted},
          {"skipped", s.skipped},
          {"median_abs_error_pct", s.median_abs},
          {"p90_abs_error_pct", s.p90_abs},
          {"mean_abs_error_pct", s.mean_abs},
          {"bias_pct", s.bias}};
}

void print_groups(std::ostream& out, const Rows& rows, const std::string& title,
                  const std::function<std::string(const ValidationRow&)>& key) {
  std::map<std::string, Rows> groups;
  for (const ValidationRow* r : rows) groups[key(*r)].push_back(r);
  TextTable table({title, "predicted", "skipped", "median %", "p90 %", "bias %"});
  for (const auto& [name, members] : groups) {
    const ErrorSummary s = summarize_errors(members);
    table.add({name, fmt::format("{}", s.predicted), fmt::format("{}", s.skipped), fmt::format("{:.1f}", s.median_abs),
               fmt::format("{:.1f}", s.p90_abs), fmt::format("{:+.1f}", s.bias)});
  }
  out << table.to_text() << "\n";
}

// Groups of the rows of one kind: step times (model) or peak memory.
void print_text(std::ostream& out, const Rows& rows, const std::string& kind) {
  print_groups(out, rows, "kind", [](const ValidationRow& r) { return r.kind; });
  Rows steps;
  for (const ValidationRow* r : rows)
    if (r->kind == kind) steps.push_back(r);
  print_groups(out, steps, "source", [](const ValidationRow& r) { return r.group; });
  print_groups(out, steps, "tier", [](const ValidationRow& r) { return r.tier; });
  print_groups(out, steps, "type", [](const ValidationRow& r) { return r.moe ? "MoE" : "dense"; });
  print_groups(out, steps, "gpu", [](const ValidationRow& r) { return r.gpu; });
  print_groups(out, steps, "size", [](const ValidationRow& r) { return r.size_class; });
  std::map<std::string, int> reasons;
  for (const ValidationRow* r : steps)
    if (r->status == "skipped") ++reasons[r->reason];
  for (const auto& [why, n] : reasons) out << fmt::format("skipped {:4}  {}\n", n, why);
}

void print_measured(std::ostream& out, const Rows& rows) {
  TextTable table({"case", "metric", "measured", "predicted", "error %"});
  for (const ValidationRow* r : rows)
    table.add({r->id, r->metric, fmt::format("{:.6g}", r->measured), fmt::format("{:.6g}", r->predicted),
               fmt::format("{:+.1f}", r->error_pct())});
  out << table.to_text() << "\n";
  print_groups(out, rows, "kind", [](const ValidationRow& r) { return r.kind; });
}

nlohmann::ordered_json choice_groups(const PlanChoice& c) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ChoiceGroup& g : c.by_group)
    out.push_back({{"group", g.name},
                   {"layouts", g.layouts},
                   {"regret_pct", g.regret_pct},
                   {"kendall_tau", g.tau},
                   {"chosen", g.chosen},
                   {"best", g.best}});
  return out;
}

void print_correlation(std::ostream& out, const ErrorCorrelation& c) {
  out << fmt::format("errors of layouts of one model and cluster: correlation {:.2f} ({} groups, {} layouts)\n", c.rho,
                     c.groups, c.layouts);
}

void print_choice(std::ostream& out, const PlanChoice& c) {
  out << fmt::format(
      "choice of layout: {} groups of at least four ({} layouts): regret {:.1f} % mean, {:.1f} % worst; "
      "Kendall's tau {:.2f}\n",
      c.groups, c.layouts, c.mean_regret_pct, c.worst_regret_pct, c.mean_tau);
}

int threads_of(const Options& o) {
  return o.threads > 0 ? o.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<Case> read_cases(const Options& o) {
  std::vector<std::string> files = o.files;
  if (files.empty()) files.push_back(data_path("scenarios/validation/cases.yaml"));
  std::vector<Case> cases;
  for (const std::string& f : files)
    for (Case& c : load_cases(f)) cases.push_back(std::move(c));
  return select_cases(std::move(cases), o.only);
}

std::vector<ValidationRow> measured_rows(const Options& o) {
  const bool stack = o.kind == "stack";
  std::vector<std::string> files = o.files;
  if (files.empty())
    files.push_back(data_path(stack ? "scenarios/measurements/h200_k3_modules.csv"
                                    : "scenarios/measurements/h200_two_gpu_steps.csv"));
  std::vector<ValidationRow> rows;
  for (const std::string& f : files)
    for (ValidationRow& r : stack ? validate_stack(f) : validate_steps(f)) rows.push_back(std::move(r));
  return rows;
}

std::string title_of(const std::string& kind) {
  if (kind == "model") return "training runs";
  if (kind == "memory") return "peak memory";
  return kind == "stack" ? "measured K3 modules" : "measured steps on two GPUs";
}

std::vector<std::string> notes_of(bool measured) {
  if (measured) return {"Measured on the GPUs that the file names; the constants of the profile are those shipped."};
  return {
      "Predictions use one set of constants per GPU and per software stack, fitted on all cases; `k3sim validate "
      "--cross-validate` fits without the cases that it scores.",
      "Tiers: A states everything that is needed, B lacks details that follow from the framework's defaults, C lacks "
      "more. A case that lacks what cannot be inferred is not predicted, with the reason."};
}

std::vector<PageTable> error_analysis(const Options& o, const std::vector<Case>& cases,
                                      const std::vector<ValidationRow>& rows) {
  std::vector<PageTable> out{feature_table(error_features(cases, rows, o.kind))};
  if (o.kind != "model") return out;
  const std::vector<Case> shipped = load_cases(data_path("scenarios/validation/cases.yaml"));
  const auto explanations = load_explanations(data_path("scenarios/validation/explanations.yaml"), shipped);
  const auto largest = largest_errors(cases, rows, explanations);
  out.push_back(largest_error_table(largest));
  out.push_back(largest_error_parts(largest));
  return out;
}

int run(const Options& o, CommandContext& context) {
  const bool published = o.kind == "model" || o.kind == "memory";
  if (o.only.any() && (o.cross_validate || !published))
    throw UsageError("--tier, --type and --match select published training runs; they go with --kind model or memory");
  if (o.cross_validate) return run_cross_validation(read_cases(o), threads_of(o), o.out, context);
  if (o.kind == "collective") return run_validate_collective(o.files, o.out, context);
  if (o.kind == "kernel") return run_validate_kernel(o.files, o.out, context);
  if (o.kind == "schedule") return run_validate_schedule(read_cases(o), threads_of(o), o.out, context);
  const bool measured = o.kind == "stack" || o.kind == "step";
  const std::vector<Case> cases = measured ? std::vector<Case>() : read_cases(o);
  const std::vector<ValidationRow> all = measured ? measured_rows(o) : validate_cases(cases, threads_of(o), o.network);
  Rows rows, scored;
  for (const ValidationRow& r : all) {
    if (!measured && o.kind != "model" && r.kind != o.kind) continue;
    rows.push_back(&r);
    if (measured || o.kind == "memory" || r.kind == "model") scored.push_back(&r);
  }
  if (!o.out.empty()) {
    ValidationPageInput page{title_of(o.kind), rows, scored, notes_of(measured), {}};
    if (published) page.more = error_analysis(o, cases, all);
    write_validation(o.out, std::move(page), context);
  }
  if (!context.json) {
    measured ? print_measured(context.out, rows) : print_text(context.out, rows, o.kind);
    if (!measured && o.kind == "model") print_choice(context.out, plan_choice(cases, all));
    if (!measured && o.kind == "model") print_correlation(context.out, error_correlation(cases, all));
    return 0;
  }
  nlohmann::ordered_json j{{"cases", nlohmann::ordered_json::array()}};
  for (const ValidationRow* r : rows) j["cases"].push_back(to_json(*r));
  j["summary"] = to_json(summarize_errors(scored));
  if (!measured) {
    const PlanChoice c = plan_choice(cases, all);
    j["choice"] = {{"groups", c.groups},
                   {"layouts", c.layouts},
                   {"mean_regret_pct", c.mean_regret_pct},
                   {"worst_regret_pct", c.worst_regret_pct},
                   {"kendall_tau", c.mean_tau}};
    j["choice"]["by_group"] = choice_groups(c);
    j["choice"]["error_correlation"] = error_correlation(cases, all).rho;
  }
  context.out << j.dump(2) << "\n";
  return 0;
}

}  // namespace

void add_validate_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "validate", "predictions against published measurements", "k3sim validate --json");
  c->add_option("cases", o->files, "case files (default: the shipped validation/cases.yaml)");
  c->add_option("--kind", o->kind, "what is compared")
      ->check(CLI::IsMember({"model", "memory", "kernel", "stack", "step", "collective", "schedule"}));
  c->add_option("--network", o->network,
                "kinds model and memory: one task per kernel, with this network as in run (default: one task per layer "
                "pass, every communication alone)")
      ->check(CLI::IsMember({"flows", "closed_form"}));
  c->add_option("--tier", o->only.tiers, "only these tiers, such as A,B")
      ->delimiter(',')
      ->check(CLI::IsMember({"A", "B", "C"}));
  c->add_option("--type", o->only.type, "only dense or only MoE models")->check(CLI::IsMember({"dense", "moe"}));
  c->add_option("--match", o->only.words, "only cases with one of these words in id, source, family or model name")
      ->delimiter(',');
  c->add_flag("--cross-validate", o->cross_validate, "fit the software constants without the cases that are scored");
  c->add_option("--out", o->out, "folder for validation.csv and report.html");
  c->add_option("--threads", o->threads, "worker threads (default: all cores)");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
