// What the schedule commands do. JSON keys of lint: product-spec section 7 (more keys are added).
// Source: product-spec sections 2 and 7; issue 5.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "models/build/machine_loader.h"
#include "models/build/schedule_costs.h"
#include "models/config/scenario_loader.h"
#include "models/schedule/csv.h"
#include "models/schedule/draw.h"
#include "models/schedule/lint.h"
#include "models/schedule/lower.h"
#include "models/schedule/registry.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/schedule_command.h"
#include "tools/commands/schedule_times.h"
#include "tools/commands/text_table.h"

namespace k3sim {

namespace {
using Json = nlohmann::ordered_json;

// A file, if the source looks like one, or is one and not a name.
bool is_file(const std::string& source) {
  if (source.find_first_of("./") != std::string::npos) return true;
  for (const ScheduleInfo& info : schedule_registry())
    if (source == info.name) return false;
  return std::filesystem::is_regular_file(source);
}

CsvSchedule parse_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) throw ConfigError("cannot read the schedule file", "", {path, 0, 0});
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return parse_schedule_csv(text, path);
}

Schedule named(const ScheduleCommandOptions& o) {
  ScheduleSpec spec{.name = o.source, .ranks = o.ranks, .chunks = o.chunks, .microbatches = o.microbatches};
  if (o.chunks >= 1 && find_schedule(o.source).fixed_chunks > 0) spec.chunks = 1;
  spec.group_size = o.group_size;
  spec.extra_warmup = o.extra_warmup;
  spec.slices = o.slices;
  spec.memory_limit = o.memory_limit;
  if (o.stage_times.empty())
    spec.times = uniform_stage_times(o);
  else
    spec.times_per_stage = read_stage_times(o.stage_times);
  return make_schedule(spec);
}

CsvSchedule any_schedule(const ScheduleCommandOptions& o) {
  if (is_file(o.source)) return parse_file(o.source);
  CsvSchedule out;
  out.schedule = named(o);
  return out;
}

void tell_legacy(const CsvSchedule& file, CommandContext& context) {
  if (file.legacy)
    context.err << "note: legacy dialect, translated: BW is read as the full backward B, B as the input gradient I\n";
}

// For commands that need a valid schedule: prints why it is not one.
bool usable(const CsvSchedule& file, const std::string& source, CommandContext& context) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < file.problems.size(); ++i)
    problems.push_back({file.places[i], "", file.problems[i].what, ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  tell_legacy(file, context);
  const LintReport report = lint_schedule(file.schedule);
  if (!report.valid) context.err << source << " is not a valid schedule\n" << report.text;
  return report.valid;
}

struct TimedSchedule {
  Schedule schedule;
  ScheduleCosts costs;
};

// The schedule as the scenario would run it, with the durations of its layers.
TimedSchedule of_scenario(const ScheduleCommandOptions& o) {
  Scenario scenario = load_scenario(o.scenario, o.overrides);
  scenario.schedule.name = is_file(o.source) ? "1f1b" : o.source;
  scenario.schedule.file = is_file(o.source) ? o.source : "";
  const StepPlan plan = make_step_plan(scenario, load_machine(scenario));
  return {plan.schedule, schedule_costs(plan)};
}

ScheduleCosts costs_of(const ScheduleCommandOptions& o, const Schedule& s) {
  ScheduleCosts costs;
  costs.stages = o.stage_times.empty() ? std::vector{uniform_stage_times(o)} : read_stage_times(o.stage_times);
  if (costs.stages.size() > 1 && static_cast<int>(costs.stages.size()) != s.stages)
    throw ConfigError(fmt::format("times for {} stages, but the schedule has {}", costs.stages.size(), s.stages), "",
                      {o.stage_times, 0, 0});
  return costs;
}

Json idle_json(const RankTimeline& r) {
  return {{"warm_up_s", r.idle.warm_up.seconds()},
          {"cool_down_s", r.idle.cool_down.seconds()},
          {"communication_s", r.idle.communication.seconds()},
          {"imbalance_s", r.idle.imbalance.seconds()},
          {"dependency_s", r.idle.dependency.seconds()}};
}

Json notes_json(const ScheduleNotes& n) {
  return {{"redispatches", n.redispatches},       {"routed_weight_blocks", n.routed_weights},
          {"weights_beside_send", n.beside_send}, {"parameter_gathers", n.gathers},
          {"gradient_reductions", n.reductions},  {"offloads", n.offloads}};
}

Json show_json(const Schedule& s, const Timeline& t) {
  Json ranks = Json::array();
  for (const RankTimeline& r : t.ranks)
    ranks.push_back({{"busy_s", r.busy.seconds()},
                     {"bubble_s", r.bubble().seconds()},
                     {"peak_activations", r.peak_activations},
                     {"idle", idle_json(r)}});
  return {{"name", s.name},
          {"ranks", s.ranks},
          {"stages", s.stages},
          {"microbatches", s.microbatches},
          {"makespan_s", t.makespan.seconds()},
          {"bubble_s", t.bubble().seconds()},
          {"peak_activations", t.peak_activations()},
          {"notes", notes_json(schedule_notes(s))},
          {"per_rank", ranks}};
}

std::string idle_table(const Timeline& t, bool colour) {
  TextTable table(
      {"rank", "busy ms", "bubble ms", "warm-up", "cool-down", "transfer", "imbalance", "dependency", "activations"});
  auto ms = [](Time time) { return fmt::format("{:.4g}", time.milliseconds()); };
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    const RankTimeline& x = t.ranks[r];
    table.add({fmt::to_string(r), ms(x.busy), ms(x.bubble()), ms(x.idle.warm_up), ms(x.idle.cool_down),
               ms(x.idle.communication), ms(x.idle.imbalance), ms(x.idle.dependency),
               fmt::to_string(x.peak_activations)});
  }
  return table.to_text(colour);
}

Json problems_json(const std::vector<ScheduleProblem>& problems) {
  Json out = Json::array();
  for (const ScheduleProblem& p : problems) out.push_back({{"rank", p.rank}, {"index", p.index}, {"what", p.what}});
  return out;
}
}  // namespace

int run_schedule_list(CommandContext& context) {
  Json rows = Json::array();
  TextTable forms({"name", "bubble", "activations", "says who, for which m"}), about({"name", "what it is", "source"});
  for (const ScheduleInfo& info : schedule_registry()) {
    rows.push_back({{"name", info.name},
                    {"bubble", info.bubble},
                    {"basis", info.basis},
                    {"memory", info.memory},
                    {"source", info.source},
                    {"description", info.description}});
    forms.add({info.name, info.bubble, info.memory, info.basis});
    about.add({info.name, info.description, info.source});
  }
  if (context.json)
    context.out << Json{{"schedules", rows}}.dump() << '\n';
  else
    context.out
        << about.to_text(context.colour()) << '\n'
        << forms.to_text(context.colour())
        << "\nF, B, W: forward, input-gradient and weight-gradient time of one rank and micro-batch, F&B an overlapped "
           "pair; p ranks, m\nmicro-batches, v chunks, k slices. Activations: most micro-batches of one rank's layers "
           "held at once. Published: the source's\nown form. Derived: proven in the generator's header. Every form is "
           "tested against the timed schedule for p = 2 ... 16, m = p ... 8p.\n";
  return 0;
}

int run_schedule_show(const ScheduleCommandOptions& o, CommandContext& context) {
  if (!(o.overlap_factor > 0.0 && o.overlap_factor <= 4.0))
    throw UsageError(fmt::format("--overlap-factor {} is outside 0 ... 4", o.overlap_factor));
  TimedSchedule timed;
  if (!o.scenario.empty()) {
    timed = of_scenario(o);
  } else {
    CsvSchedule file = any_schedule(o);
    if (!usable(file, o.source, context)) return 1;
    timed.schedule = std::move(file.schedule);
    timed.costs = costs_of(o, timed.schedule);
  }
  timed.costs.overlap_factor = o.overlap_factor;
  const Schedule& s = timed.schedule;
  const Timeline t = time_schedule(s, timed.costs);
  constexpr int kSvgWidth = 1400;
  if (!o.svg.empty()) write_file_atomically(o.svg, draw_svg(s, t, {.width = kSvgWidth}));
  if (context.json) {
    context.out << show_json(s, t).dump() << '\n';
    return 0;
  }
  const double ideal = t.makespan.seconds() - t.bubble().seconds();
  context.out << fmt::format("{}: {} ranks, {} stages, {} micro-batches\n", s.name, s.ranks, s.stages, s.microbatches)
              << draw_text(s, t, {.width = o.width, .colour = context.colour()}) << draw_phases(s)
              << fmt::format("\nmakespan {:.6g} ms, bubble {:.6g} ms ({:.2f} % of the time without it)\n\n",
                             t.makespan.milliseconds(), t.bubble().milliseconds(),
                             ideal > 0 ? 100.0 * t.bubble().seconds() / ideal : 0.0)
              << idle_table(t, context.colour());
  return 0;
}

int run_schedule_lint(const ScheduleCommandOptions& o, CommandContext& context) {
  const CsvSchedule file = any_schedule(o);
  LintReport report;
  report.problems = file.problems;
  if (file.problems.empty()) report = lint_schedule(file.schedule);
  const std::string dialect = is_file(o.source) ? file.dialect() : "generated";
  if (context.json) {
    context.out << Json{{"valid", report.valid},
                        {"problems", problems_json(report.problems)},
                        {"ranks", file.schedule.ranks},
                        {"stages", file.schedule.stages},
                        {"microbatches", file.schedule.microbatches},
                        {"dialect", dialect},
                        {"peak_activations", report.peak_activations},
                        {"notes", report.notes}}
                       .dump()
                << '\n';
    return report.valid ? 0 : 1;
  }
  tell_legacy(file, context);
  context.out << fmt::format("{}: {}, {} ranks, {} stages, {} micro-batches\n", o.source, dialect, file.schedule.ranks,
                             file.schedule.stages, file.schedule.microbatches);
  for (std::size_t i = 0; i < file.problems.size(); ++i)
    context.out << fmt::format("{}:{}:{}: {}\n", o.source, file.places[i].line, file.places[i].column,
                               file.problems[i].what);
  context.out << report.text;
  return report.valid ? 0 : 1;
}

int run_schedule_convert(const ScheduleCommandOptions& o, CommandContext& context) {
  if (o.to != "compute_only" && o.to != "compute_comms")
    throw UsageError(fmt::format("--to '{}': expected compute_only or compute_comms", o.to));
  const CsvSchedule file = any_schedule(o);
  if (!usable(file, o.source, context)) return 1;
  const std::string refusal = csv_refusal(file.schedule);
  if (!refusal.empty()) throw ConfigError(refusal);
  Schedule s = file.schedule;
  if (o.to == "compute_only" && file.transfers) {
    s = compute_only(s);
    context.err
        << "note: sends, receives, gathers and reductions are left out; PyTorch places them when it loads the file\n";
  }
  if (o.to == "compute_comms" && !file.transfers) s = lower_schedule(s);
  const std::string text = write_schedule_csv(s, {.crlf = !o.lf});
  if (o.out.empty())
    context.out << text;
  else
    write_file_atomically(o.out, text);
  return 0;
}

}  // namespace k3sim
