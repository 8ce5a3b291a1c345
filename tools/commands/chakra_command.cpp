// k3sim chakra: execution traces of MLCommons Chakra. `export` writes a predicted step for ASTRA-sim, `replay` runs
// recorded traces under another network, `show` counts what a file holds.
// Source: product-spec section 2 (conventions); tools/import/chakra_*.h.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/build/pair_actions.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/text_table.h"
#include "tools/import/chakra_export.h"
#include "tools/import/chakra_replay.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string scenario, prefix, out, groups, detail = "kernel";
  std::vector<std::string> set;
  int ranks = 0;
  double compute_scale = 1;
};

int export_traces(const Options& o, CommandContext& context) {
  Scenario scenario = load_scenario(o.scenario, o.set);
  // A trace carries every transfer's own time; whoever replays it shares the links of its own network.
  scenario.network.mode = "closed_form";
  const Machine machine = load_machine(scenario);
  StepOptions options;
  options.allow_assumed = true;
  options.keep_graph = true;
  options.graph.detail = o.detail == "kernel" ? StepGraphOptions::Detail::kernel : StepGraphOptions::Detail::step;
  const StepPrediction p = predict_step(scenario, machine, options);
  const ChakraExport chakra(*p.plan, machine, *p.graph, *p.times);
  const int ranks = o.ranks > 0 ? std::min(o.ranks, chakra.world()) : chakra.world();
  OutputFolder out(o.out);
  std::size_t nodes = 0;
  for (int r = 0; r < ranks; ++r) {
    const ChakraTrace trace = chakra.rank(r);
    nodes += trace.nodes.size();
    out.add(fmt::format("trace.{}.et", r), write_chakra(trace));
  }
  out.add("trace.json", chakra.groups_json());
  out.commit();
  if (context.json)
    context.out << Json{{"ranks", ranks},
                        {"world", chakra.world()},
                        {"nodes", nodes},
                        {"step_time_s", p.times->makespan.seconds()}}
                       .dump()
                << '\n';
  else
    context.out << fmt::format("{} of {} ranks, {} nodes: {}/trace.RANK.et, groups in {}/trace.json\n", ranks,
                               chakra.world(), nodes, o.out, o.out);
  return 0;
}

ReplayOptions replay_options(const Options& o) {
  ReplayOptions r;
  r.compute_scale = o.compute_scale;
  if (o.scenario.empty()) return r;
  const Scenario s = load_scenario(o.scenario, o.set);
  const Machine m = load_machine(s);
  ReplayNetwork net;
  net.comm = m.comm;
  net.gpus_per_node = static_cast<int>(s.cluster.gpus_per_node);
  net.network_share = 1.0 / std::max(1.0, s.cluster.oversubscription);
  net.efficiency = m.software.comm_efficiency;
  net.ep_efficiency = m.software.ep_efficiency;
  r.network = net;
  r.peak = m.gpu.bf16_dense;
  r.hbm = m.gpu.hbm;
  return r;
}

Json replay_json(const ReplayResult& r) {
  Json ranks = Json::array(), collectives = Json::array();
  for (const ReplayRank& x : r.ranks)
    ranks.push_back({{"rank", x.rank},
                     {"end_s", x.end.seconds()},
                     {"compute_s", x.compute.seconds()},
                     {"communication_s", x.communication.seconds()},
                     {"exposed_s", x.exposed.seconds()}});
  for (const ReplayCollective& c : r.collectives)
    collectives.push_back({{"kind", c.kind},
                           {"ranks", c.ranks},
                           {"count", c.count},
                           {"bytes", c.bytes.count()},
                           {"recorded_s", c.recorded.seconds()},
                           {"replayed_s", c.replayed.seconds()}});
  return {{"makespan_s", r.makespan.seconds()}, {"ranks", ranks}, {"collectives", collectives}, {"notes", r.notes}};
}

void print_replay(const ReplayResult& r, CommandContext& context) {
  context.out << fmt::format("{} ranks end after {:.3f} ms\n\n", r.ranks.size(), r.makespan.milliseconds());
  TextTable collectives({"communication", "ranks", "calls", "MB each", "recorded ms", "replayed ms"});
  for (const ReplayCollective& c : r.collectives)
    collectives.add({c.kind, fmt::to_string(c.ranks), fmt::to_string(c.count),
                     fmt::format("{:.3f}", c.bytes.as_double() / 1e6), fmt::format("{:.3f}", c.recorded.milliseconds()),
                     fmt::format("{:.3f}", c.replayed.milliseconds())});
  if (!collectives.empty()) context.out << collectives.to_text(context.colour()) << '\n';
  TextTable ranks({"rank", "end ms", "compute ms", "communication ms", "not computing ms"});
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(kShown, r.ranks.size()); ++i)
    ranks.add({fmt::to_string(r.ranks[i].rank), fmt::format("{:.3f}", r.ranks[i].end.milliseconds()),
               fmt::format("{:.3f}", r.ranks[i].compute.milliseconds()),
               fmt::format("{:.3f}", r.ranks[i].communication.milliseconds()),
               fmt::format("{:.3f}", r.ranks[i].exposed.milliseconds())});
  context.out << ranks.to_text(context.colour());
  if (r.ranks.size() > kShown) context.out << fmt::format("... and {} more ranks\n", r.ranks.size() - kShown);
}

int replay_traces(const Options& o, CommandContext& context) {
  const ReplayResult r = replay_chakra(load_chakra(o.prefix, o.groups), replay_options(o));
  for (const std::string& note : r.notes) context.err << "note: " << note << '\n';
  if (context.json)
    context.out << replay_json(r).dump(2) << '\n';
  else
    print_replay(r, context);
  return 0;
}

int show_trace(const Options& o, CommandContext& context) {
  const ChakraTrace trace = load_chakra_file(o.prefix);
  struct Sum {
    std::int64_t count = 0, bytes = 0;
    std::uint64_t us = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ChakraNode& n : trace.nodes) {
    std::string kind = to_string(n.type);
    const std::int64_t type = n.integer("comm_type").value_or(-1);
    if (n.type == ChakraType::comm_coll && type >= 0 && type < kChakraCollectives)
      kind = to_string(static_cast<ChakraCollective>(type));
    Sum& s = sums[kind];
    ++s.count;
    s.us += n.duration_us;
    s.bytes += n.integer("comm_size").value_or(0);
  }
  Json j{{"version", trace.version()}, {"nodes", trace.nodes.size()}, {"kinds", Json::object()}};
  TextTable table({"kind", "nodes", "ms", "MB"});
  for (const auto& [kind, s] : sums) {
    j["kinds"][kind] = {{"nodes", s.count}, {"duration_us", s.us}, {"bytes", s.bytes}};
    table.add({kind, fmt::to_string(s.count), fmt::format("{:.3f}", static_cast<double>(s.us) / 1000),
               fmt::format("{:.3f}", static_cast<double>(s.bytes) / 1e6)});
  }
  if (context.json)
    context.out << j.dump() << '\n';
  else
    context.out << fmt::format("version {}, {} nodes\n\n", trace.version(), trace.nodes.size())
                << table.to_text(context.colour());
  return 0;
}

void add_export(CLI::App& chakra, CommandContext& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* c = add_command(chakra, "export", "a predicted step as execution traces, one file per GPU",
                            "k3sim chakra export llama3_405b_16384_h100 --ranks 64 --out traces");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--out", o->out, "folder for trace.RANK.et and trace.json (process groups)")->required();
  c->add_option("--ranks", o->ranks, "only ranks 0 ... N-1 (default: all)")->check(CLI::PositiveNumber);
  c->add_option("--detail", o->detail, "one node per kernel, or per layer pass with expert communication inside")
      ->check(CLI::IsMember({"kernel", "step"}))
      ->capture_default_str();
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = export_traces(*o, context); });
}

void add_replay(CLI::App& chakra, CommandContext& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* c = add_command(chakra, "replay", "run execution traces again, under another network when one is named",
                            "k3sim chakra replay traces/trace --network my_cluster.yaml");
  c->add_option("prefix", o->prefix, "PREFIX of the files PREFIX.RANK.et, or one file")->required();
  c->add_option("--network", o->scenario,
                "scenario whose GPUs, nodes and fabric carry the communication (default: durations as recorded)");
  add_set_option(*c, o->set);
  c->add_option("--groups", o->groups, "process groups as JSON (default: PREFIX.json, or the traces' own)");
  c->add_option("--compute-scale", o->compute_scale, "compute takes this many times as long")
      ->check(CLI::PositiveNumber);
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = replay_traces(*o, context); });
}

void add_show(CLI::App& chakra, CommandContext& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* c = add_command(chakra, "show", "what an execution trace holds", "k3sim chakra show traces/trace.0.et");
  c->add_option("file", o->prefix, "one .et file")->required();
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = show_trace(*o, context); });
}

}  // namespace

void add_chakra_command(CLI::App& app, CommandContext& context) {
  CLI::App* chakra = add_command(app, "chakra", "execution traces of MLCommons Chakra (ASTRA-sim)",
                                 "k3sim chakra export k3_2048_h800 --ranks 8 --out traces");
  chakra->require_subcommand(1);
  add_export(*chakra, context);
  add_replay(*chakra, context);
  add_show(*chakra, context);
}

}  // namespace k3sim
