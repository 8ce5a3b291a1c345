// Table, CSV and JSON of collective predictions; see the header.
// With --flows the same algorithm runs over the links of the cluster, several groups sharing their NICs if asked for.
// Source: nccl-tests (time, algbw = size / time, busbw = algbw x factor).
#include "tools/commands/collective_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "models/comm/collective_flows.h"
#include "models/comm/fabric_loader.h"
#include "models/config/data_files.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"
#include "sim/base/units_text.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/report/csv.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
Enum word(const std::string& text, const char* option, int count) {
  std::vector<std::string> known;
  for (int i = 0; i < count; ++i) {
    known.emplace_back(to_string(static_cast<Enum>(i)));
    if (known.back() == text) return static_cast<Enum>(i);
  }
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  const std::string hint = did_you_mean(text, known);
  throw UsageError(fmt::format("{} '{}' is not one of {}{}{}", option, text, list, hint.empty() ? "" : "; ", hint));
}

Bytes size_of(const std::string& text, const char* option) {
  const Parsed<Bytes> b = parse_bytes(text);
  if (!b) throw UsageError(fmt::format("{} '{}': {}", option, text, b.why));
  if (*b.value <= Bytes(0)) throw UsageError(fmt::format("{} must be positive, got '{}'", option, text));
  return *b.value;
}

void check_options(const CollectiveCommandOptions& o) {
  if (o.ranks < 2) throw UsageError(fmt::format("--ranks must be at least 2, got {}", o.ranks));
  if (o.ranks_per_node < 1)
    throw UsageError(fmt::format("--ranks-per-node must be positive, got {}", o.ranks_per_node));
  if (o.ranks > o.ranks_per_node && o.ranks % o.ranks_per_node != 0) {
    throw UsageError(fmt::format("--ranks {} is not a multiple of --ranks-per-node {}", o.ranks, o.ranks_per_node));
  }
  if (!(o.factor > 1)) throw UsageError(fmt::format("--factor must be above 1, got {}", o.factor));
  if (o.groups < 1) throw UsageError(fmt::format("--groups must be at least 1, got {}", o.groups));
  if (!o.flows && (o.groups > 1 || o.oversubscription > 0)) {
    throw UsageError("--groups and --oversubscription need --flows");
  }
  if (o.algorithm.empty() != o.protocol.empty()) throw UsageError("--algorithm and --protocol go together");
  if (o.operation == "send_recv" && o.ranks != 2) throw UsageError("send_recv is between 2 ranks");
}

CommModel load_model(const CollectiveCommandOptions& o) {
  CommModel m = load_comm_model(data_path("hardware_profiles/collectives/" + o.gpu + ".yaml"));
  if (!o.fabric.empty()) m.scale_out = load_scale_out(data_path("hardware_profiles/fabric/" + o.fabric + ".yaml"));
  if (o.slow_stack) m.latency_factor = m.slow_stack_factor;
  return m;
}

// Runs the groups together over the links; the groups occupy the same GPUs, so they share every link.
class FlowRunner {
 public:
  FlowRunner(const CollectiveCommandOptions& o, const CommModel& m, const CommGroup& g)
      : topology_(build_topology(load_cluster({.gpu = o.gpu,
                                               .node = o.node,
                                               .fabric = m.scale_out.name,
                                               .nodes = g.nodes,
                                               .oversubscription = o.oversubscription}))),
        router_(topology_),
        loads_(topology_.links.size()),
        groups_(o.groups) {
    std::vector<int> gpus;
    if (g.ranks_per_node > topology_.spec.node.gpus) {
      throw UsageError(
          fmt::format("--ranks-per-node {} on nodes of {} GPUs", g.ranks_per_node, topology_.spec.node.gpus));
    }
    for (int r = 0; r < g.ranks; ++r)
      gpus.push_back(r / g.ranks_per_node * topology_.spec.node.gpus + r % g.ranks_per_node);
    placed_ = place_group(topology_, gpus);
  }

  Time run(const CommModel& m, Collective kind, Bytes size) {
    const FlowPlan plan = collective_flows(m, router_, topology_, kind, size, placed_, loads_);
    const std::vector<FlowPlan> plans(static_cast<std::size_t>(groups_), plan);
    const auto capacities = topology_.capacities();
    const NetworkWork work = one_job_per_task(plans);
    NetworkProgress network(capacities, work);
    for (std::size_t t = 0; t < plans.size(); ++t) network.start(TaskId(t), Time(), Time());
    std::vector<TaskId> done;
    Time last;
    for (Time t = network.next_completion(); t != Time::max(); t = network.next_completion()) {
      network.advance(t, done);
      last = t;
    }
    return last;
  }

 private:
  Topology topology_;
  Router router_;
  LinkLoads loads_;
  PlacedGroup placed_;
  int groups_;
};

struct Line {
  Bytes size;
  CollectiveTime prediction;
  double algorithm_GBps = 0, bus_GBps = 0;
};

std::vector<Line> predict(const CollectiveCommandOptions& o) {
  const auto kind = word<Collective>(o.operation, "--op", kCollectiveKinds);
  const CommModel m = load_model(o);
  const CommGroup g = comm_group(o.ranks, o.ranks_per_node);
  std::optional<TuningChoice> forced;
  if (!o.algorithm.empty()) {
    forced = TuningChoice{word<Algorithm>(o.algorithm, "--algorithm", kAlgorithms),
                          word<Protocol>(o.protocol, "--protocol", kProtocols)};
    if (g.nodes == 1)
      throw UsageError("--algorithm needs more than one node: inside a node the measured curve is used");
    if (!can_run(m, kind, g, *forced)) {
      throw UsageError(fmt::format("{} cannot run as {} with {} here", o.operation, o.algorithm, o.protocol));
    }
  }
  std::optional<FlowRunner> flows;
  if (o.flows) flows.emplace(o, m, g);
  std::vector<Line> lines;
  const Bytes last = size_of(o.to, "--to");
  for (Bytes size = size_of(o.from, "--from"); size <= last; size = Bytes::ceil(size.as_double() * o.factor)) {
    Line line{size, collective_time(m, kind, size, g, forced)};
    if (flows) line.prediction.time = flows->run(m, kind, size);
    line.algorithm_GBps = size.as_double() / line.prediction.time.seconds() / kGB;
    line.bus_GBps = line.algorithm_GBps * bus_factor(kind, g.ranks);
    lines.push_back(line);
  }
  if (lines.empty()) throw UsageError(fmt::format("--from '{}' is above --to '{}'", o.from, o.to));
  return lines;
}

std::string to_csv(const std::vector<Line>& lines) {
  CsvTable out({{"bytes", "byte", "buffer, as nccl-tests counts it"},
                {"time_us", "us", "predicted time"},
                {"algorithm_GBps", "GB/s", "bytes over time"},
                {"bus_GBps", "GB/s", "what the busiest link carries"},
                {"algorithm", "text", "chosen algorithm"},
                {"protocol", "text", "chosen protocol"},
                {"sms", "1", "multiprocessors that the kernel occupies"},
                {"provenance", "text", "tier of the cost"}});
  const auto number = [](double v) { return fmt::format("{:.3f}", v); };
  for (const Line& l : lines) {
    const CollectiveTime& p = l.prediction;
    out.add({fmt::to_string(l.size.count()), number(p.time.microseconds()), number(l.algorithm_GBps),
             number(l.bus_GBps), to_string(p.algorithm), to_string(p.protocol), fmt::to_string(p.sms),
             to_string(p.provenance)});
  }
  return out.text();
}

Json to_json(const CollectiveCommandOptions& o, const std::vector<Line>& lines) {
  Json rows = Json::array();
  for (const Line& l : lines) {
    const CollectiveTime& p = l.prediction;
    rows.push_back({{"bytes", l.size.count()},
                    {"time_us", p.time.microseconds()},
                    {"algorithm_GBps", l.algorithm_GBps},
                    {"bus_GBps", l.bus_GBps},
                    {"algorithm", to_string(p.algorithm)},
                    {"protocol", to_string(p.protocol)},
                    {"sms", p.sms},
                    {"provenance", to_string(p.provenance)}});
  }
  return Json{{"operation", o.operation}, {"gpu", o.gpu}, {"ranks", o.ranks}, {"rows", rows}};
}

}  // namespace

int run_collective_command(const CollectiveCommandOptions& options, std::ostream& out) {
  check_options(options);
  const std::vector<Line> lines = predict(options);
  if (options.json) return out << to_json(options, lines).dump() << '\n', 0;
  if (options.csv) return out << to_csv(lines), 0;
  TextTable table(
      {"size", "bytes", "time us", "algbw GB/s", "busbw GB/s", "algorithm", "protocol", "SMs", "known from"});
  for (const Line& l : lines) {
    const CollectiveTime& p = l.prediction;
    table.add({to_text(l.size), fmt::to_string(l.size.count()), fmt::format("{:.1f}", p.time.microseconds()),
               fmt::format("{:.2f}", l.algorithm_GBps), fmt::format("{:.2f}", l.bus_GBps), to_string(p.algorithm),
               to_string(p.protocol), fmt::to_string(p.sms), to_string(p.provenance)});
  }
  out << fmt::format("{} on {} x {} ({} per node)\n\n", options.operation, options.ranks, options.gpu,
                     std::min(options.ranks, options.ranks_per_node))
      << table.to_text();
  return 0;
}

void add_collective_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      add_command(app, "collective", "predict one collective over a range of sizes",
                  "k3sim collective --op all_reduce --gpu h100_sxm --ranks 1024 --from \"1 MiB\" --to \"16 GiB\"");
  const auto o = std::make_shared<CollectiveCommandOptions>();
  command->add_option("--op", o->operation, "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv")
      ->capture_default_str();
  command->add_option("--gpu", o->gpu, "profile in hardware_profiles/collectives")->capture_default_str();
  command->add_option("--ranks", o->ranks, "GPUs that take part")->capture_default_str();
  command->add_option("--ranks-per-node", o->ranks_per_node, "of them in one node")->capture_default_str();
  command->add_option("--from", o->from, "smallest buffer, nccl-tests convention")->capture_default_str();
  command->add_option("--to", o->to, "largest buffer")->capture_default_str();
  command->add_option("--factor", o->factor, "from one size to the next")->capture_default_str();
  command->add_option("--node", o->node, "profile in hardware_profiles/node (with --flows)")->capture_default_str();
  command->add_option("--fabric", o->fabric, "profile in hardware_profiles/fabric");
  command->add_option("--algorithm", o->algorithm, "force ring, tree, nvls_tree or pat between nodes");
  command->add_option("--protocol", o->protocol, "force ll, ll128 or simple");
  command->add_flag("--slow-stack", o->slow_stack, "latency under MPI or an eager framework");
  command->add_flag("--flows", o->flows, "run over the links of the cluster instead of the closed form");
  command->add_option("--oversubscription", o->oversubscription, "of the leaves, with --flows");
  command->add_option("--groups", o->groups, "equal groups on the same GPUs at the same time, with --flows");
  command->add_flag("--csv", o->csv, "CSV instead of a table");
  add_json_flag(*command, context);
  command->callback([o, &context] {
    o->json = context.json;
    context.exit_code = run_collective_command(*o, context.out);
  });
}

}  // namespace k3sim
