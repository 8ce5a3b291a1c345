// k3sim sweep: evaluates every configuration of a space, on threads, shards or MPI ranks.
//   GNU parallel:  parallel k3sim sweep SPACE.yaml --out DIR --shard {}/8 ::: {0..7}; k3sim sweep SPACE.yaml --out DIR
//   --merge Slurm and MPI: scenarios/README.md has a job script.
// Source: product-spec sections 2 and 3; engine-design section 9.
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <thread>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/progress.h"
#include "tools/commands/report_files.h"
#include "tools/result_pages/sweep_page.h"
#include "tools/sweep/sweep.h"

namespace k3sim {

namespace {

struct Options {
  std::string space, shard, detail = "kernel";
  SweepRequest request;
  std::vector<std::string> set;
  bool merge = false, allow_assumed = false, tp_across_nodes = false;
};

void parse_shard(const std::string& text, SweepRequest& request) {
  const std::size_t slash = text.find('/');
  const auto whole = [](const std::string& t, int& out) {
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), out);
    return !t.empty() && error == std::errc{} && end == t.data() + t.size();
  };
  const bool good = slash != std::string::npos && whole(text.substr(0, slash), request.shard) &&
                    whole(text.substr(slash + 1), request.shards);
  if (!good || request.shards < 1 || request.shard < 0 || request.shard >= request.shards)
    throw UsageError(fmt::format("--shard '{}': must be i/n with i from 0 to n - 1", text));
  request.sharded = true;
}

// From the complete table, so that the page does not depend on who evaluated which row.
void write_report(const std::string& folder, const RowMaker& rows, const CommandContext& context) {
  std::ifstream in(folder + "/sweep.csv", std::ios::binary);
  const CsvData csv = parse_csv(std::string(std::istreambuf_iterator<char>(in), {}), folder + "/sweep.csv");
  OutputFolder out(folder);
  out.add("data_dictionary.csv", data_dictionary_csv({{"sweep.csv", rows.columns()}}));
  add_page(out, sweep_page(rows.space(), rows.columns(), csv, context.command));
  out.commit();
}

int run(Options& o, CommandContext& context) {
  if (!o.shard.empty()) parse_shard(o.shard, o.request);
  if (o.merge && (o.request.resume || o.request.sharded)) throw UsageError("--merge takes no --shard and no --resume");
  const SearchSpace space = SearchSpace::load(o.space, o.set);
  EvaluateOptions evaluate;
  evaluate.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  evaluate.allow_assumed = o.allow_assumed;
  evaluate.tp_across_nodes = o.tp_across_nodes;
  RowMaker rows(space, evaluate);
  if (o.request.threads == 0) o.request.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  SweepOutcome outcome;
  {
    Progress progress(context, "sweep", space.size() / o.request.shards);
    const auto advance = [&](std::int64_t n) { progress.advance(n); };
    outcome = o.merge            ? merge_shards(rows, o.request.folder)
              : started_by_mpi() ? run_sweep_mpi(rows, o.request, advance)
                                 : run_sweep(rows, o.request, advance);
  }
  if (outcome.file.empty()) return 0;  // another rank reports
  if (!o.request.sharded) write_report(o.request.folder, rows, context);
  if (context.json)
    context.out << fmt::format("{{\"rows\": {}, \"evaluated\": {}, \"file\": \"{}\"}}\n", outcome.total,
                               outcome.evaluated, outcome.file);
  else
    context.out << fmt::format("{} configurations, {} evaluated now: {}\n", outcome.total, outcome.evaluated,
                               outcome.file);
  return 0;
}

}  // namespace

void add_sweep_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "sweep", "evaluate every configuration of a space",
                            "k3sim sweep space.yaml --out out/sweep --threads 2\n  mpirun -n 64 k3sim sweep space.yaml "
                            "--out out/sweep --resume");
  c->add_option("space", o->space, "scenario in which values may be lists, ranges or auto")->required();
  add_set_option(*c, o->set);
  c->add_option("--out", o->request.folder,
                "folder for sweep.csv, data_dictionary.csv and report.html, or for shard-i-of-n.csv")
      ->required();
  c->add_option("--shard", o->shard, "evaluate every n-th configuration from i on: i/n");
  c->add_option("--threads", o->request.threads, "threads; 0: one per core")->check(CLI::NonNegativeNumber);
  c->add_option("--detail", o->detail, "step: one task per layer pass; kernel: as `run` (default)")
      ->check(CLI::IsMember({"step", "kernel"}));
  c->add_flag("--resume", o->request.resume, "keep the rows of an interrupted run");
  c->add_flag("--merge", o->merge, "join complete shards to sweep.csv");
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  c->add_flag("--tp-across-nodes", o->tp_across_nodes, "allow tensor parallelism beyond one node");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
