// k3sim schedule list | show | lint | convert: generates, draws, checks and translates pipeline schedules.
// A schedule is named (schedule list) or given as a PyTorch schedule CSV.
// Source: product-spec sections 2 and 7; issue 5.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

struct ScheduleCommandOptions {
  std::string source;  // a name of the registry, or a file
  int ranks = 4, chunks = 2, microbatches = 8, group_size = 0, extra_warmup = 0, slices = 2;
  double memory_limit = 0;
  double overlap_factor = 1.0;
  std::string forward = "1 ms", input_grad = "1 ms", weight_grad = "1 ms", transfer = "0 ms";
  std::string stage_times;  // a file of times per stage, instead of the four above
  std::string scenario;     // durations, ranks and micro-batches of this scenario
  std::vector<std::string> overrides;
  int width = 160;
  std::string svg;
  std::string out;
  std::string to = "compute_only";
  bool lf = false;
};

// Each returns the exit code and throws ConfigError or UsageError for wrong input.
int run_schedule_list(CommandContext& context);
int run_schedule_show(const ScheduleCommandOptions& options, CommandContext& context);
int run_schedule_lint(const ScheduleCommandOptions& options, CommandContext& context);
int run_schedule_convert(const ScheduleCommandOptions& options, CommandContext& context);

void add_schedule_command(CLI::App& app, CommandContext& context);

}  // namespace k3sim
