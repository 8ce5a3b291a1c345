// k3sim compare: a prediction against a real run, or a memory snapshot against the emulated allocator (--replay).
// Source: product-spec sections 2 and 7; engine-design sections 10 and 13.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <CLI/Validators.hpp>

#include <memory>
#include <ostream>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/compare_kineto.h"
#include "tools/commands/compare_memory.h"

namespace k3sim {
namespace {

struct Options {
  std::string scenario, snapshot, kineto, out, unit = "auto";
  std::vector<std::string> set;
  bool replay = false;
  int rank = -1, device = -1;
};

int compare(const Options& o, CommandContext& context) {
  if (o.snapshot.empty() == o.kineto.empty())
    throw UsageError("compare needs --kineto TRACE or --memory-snapshot FILE");
  if (!o.kineto.empty() && o.replay) throw UsageError("--replay belongs to --memory-snapshot");
  if (!o.kineto.empty())
    return compare_kineto({o.scenario, o.set, o.kineto, o.out, o.unit, o.rank < 0 ? 0 : o.rank, o.device}, context);
  if (o.replay && !o.scenario.empty())
    throw UsageError("--replay compares the snapshot with the emulated allocator and takes no scenario");
  if (!o.replay && o.scenario.empty()) throw UsageError("compare needs a scenario, or --replay");
  if (o.replay) return replay_memory(o.snapshot, o.out, context);
  return compare_memory({o.scenario, o.set, o.snapshot, o.out, o.rank}, context);
}

}  // namespace

void add_compare_command(CLI::App& app, CommandContext& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "compare", "prediction against a real run",
                            "k3sim compare --memory-snapshot snapshot.pickle --replay");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario");
  add_set_option(*c, o->set);
  c->add_option("--memory-snapshot", o->snapshot, "PyTorch memory snapshot (pickle or JSON)");
  c->add_option("--kineto", o->kineto,
                "PyTorch profiler trace (JSON, may be gzip); without a scenario it is only analysed");
  c->add_option("--unit", o->unit,
                "what the trace shows: one overlapped pair of chunks, or a step (default: by its names)")
      ->check(CLI::IsMember({"auto", "pair", "step"}));
  c->add_option("--device", o->device, "GPU of a trace that holds several (default: the first)");
  c->add_option("--out", o->out, "folder for compare.csv, compare.json and report.html");
  c->add_flag("--replay", o->replay, "replay the snapshot's requests through the emulated allocator");
  c->add_option("--rank", o->rank,
                "pipeline rank that the measurement comes from (default: 0; memory: the rank with most)");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = compare(*o, context); });
}

}  // namespace k3sim
