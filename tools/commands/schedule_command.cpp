// Options of the schedule commands. Source: product-spec section 2.
#include "tools/commands/schedule_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "tools/commands/command.h"

namespace k3sim {

namespace {
using Options = std::shared_ptr<ScheduleCommandOptions>;

void add_source(CLI::App& command, const Options& o) {
  command.add_option("schedule", o->source, "a name from `k3sim schedule list`, or a PyTorch schedule CSV")->required();
  command.add_option("--ranks", o->ranks, "pipeline ranks (named schedules)")->capture_default_str();
  command.add_option("--chunks", o->chunks, "stages per rank, or waves, where the schedule leaves a choice")
      ->capture_default_str();
  command.add_option("--microbatches", o->microbatches, "micro-batches per step")->capture_default_str();
  command.add_option("--group-size", o->group_size, "interleaved: micro-batches per chunk in a row (0: ranks)");
  command.add_option("--extra-warmup", o->extra_warmup,
                     "forwards before the first backward beyond the ordinary number");
  command.add_option("--slices", o->slices, "seq1f1b: pieces per sequence")->capture_default_str();
  command.add_option("--memory-limit", o->memory_limit,
                     "automatic: activations per rank, in micro-batches of the rank's layers (0: no limit)");
  command.add_option("--forward", o->forward, "time of F per stage and micro-batch")->capture_default_str();
  command.add_option("--input-grad", o->input_grad, "time of the input gradient I")->capture_default_str();
  command.add_option("--weight-grad", o->weight_grad, "time of the weight gradient W")->capture_default_str();
  command.add_option("--transfer", o->transfer, "time of one transfer between ranks")->capture_default_str();
  command.add_option("--stage-times", o->stage_times,
                     "CSV with the columns stage,forward,input_grad,weight_grad,transfer and times like '12.5 ms'");
}

void add_show(CLI::App& schedule, CommandContext& context) {
  const auto o = std::make_shared<ScheduleCommandOptions>();
  CLI::App* show = add_command(schedule, "show", "draw a schedule, its bubble, idle time and activations",
                               "k3sim schedule show zb_v --ranks 4 --microbatches 8 --svg zb_v.svg");
  add_source(*show, o);
  show->add_option(
      "--scenario", o->scenario,
      "take ranks, chunks, micro-batches and all durations from this scenario instead of the options above");
  add_set_option(*show, o->overrides);
  show->add_option("--overlap-factor", o->overlap_factor, "time of an overlapped pair over the sum of its parts");
  show->add_option("--svg", o->svg, "also write an SVG with time to scale");
  show->add_option("--width", o->width, "columns of the drawing")->capture_default_str()->check(CLI::Range(20, 2000));
  add_json_flag(*show, context);
  show->callback([o, &context] { context.exit_code = run_schedule_show(*o, context); });
}

void add_lint(CLI::App& schedule, CommandContext& context) {
  const auto o = std::make_shared<ScheduleCommandOptions>();
  CLI::App* lint = add_command(schedule, "lint", "prove a schedule valid, or show the shortest failing prefix",
                               "k3sim schedule lint my_schedule.csv");
  add_source(*lint, o);
  add_json_flag(*lint, context);
  lint->callback([o, &context] { context.exit_code = run_schedule_lint(*o, context); });
}

void add_convert(CLI::App& schedule, CommandContext& context) {
  const auto o = std::make_shared<ScheduleCommandOptions>();
  CLI::App* convert = add_command(schedule, "convert", "write a schedule as a PyTorch schedule CSV",
                                  "k3sim schedule convert zb_v --ranks 4 --microbatches 8 --out zb_v.csv");
  add_source(*convert, o);
  convert->add_option("--to", o->to, "compute_only, or compute_comms with sends, receives, gathers and reductions")
      ->capture_default_str();
  convert->add_option("--out", o->out, "the file to write; standard output without it");
  convert->add_flag("--lf", o->lf, "end lines with LF instead of CRLF");
  convert->callback([o, &context] { context.exit_code = run_schedule_convert(*o, context); });
}
}  // namespace

void add_schedule_command(CLI::App& app, CommandContext& context) {
  CLI::App* schedule = add_command(app, "schedule", "generate, draw, check and translate pipeline schedules",
                                   "k3sim schedule show k3 --ranks 3 --chunks 4 --microbatches 6");
  schedule->require_subcommand(1);
  CLI::App* list =
      add_command(*schedule, "list", "all schedules with bubble and memory formulas", "k3sim schedule list");
  add_json_flag(*list, context);
  list->callback([&context] { context.exit_code = run_schedule_list(context); });
  add_show(*schedule, context);
  add_lint(*schedule, context);
  add_convert(*schedule, context);
}

}  // namespace k3sim
