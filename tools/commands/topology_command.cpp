// Summary, link list and JSON of a topology; the drawing is in topology_svg.cpp.
// Source: hardware notes 2.2 (what a fabric is judged by: switches, tiers, oversubscription, hops).
#include "tools/commands/topology_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/comm/fabric_loader.h"
#include "sim/base/error.h"
#include "sim/base/units_text.h"
#include "sim/net/router.h"
#include "sim/net/topology_checks.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/text_table.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

struct LayerSummary {
  LinkClass kind = LinkClass::nvlink;
  std::size_t links = 0, down = 0;  // down: links without capacity
  std::size_t cables = 0;
  double slowest = 0, total = 0;  // bytes/s, per direction link
};

struct HopSummary {
  std::string what;
  Route route;
  double rate = 0;  // of a lone flow
};

std::vector<LayerSummary> layers_of(const Topology& t) {
  std::array<LayerSummary, kLinkClasses> all{};
  for (const Link& l : t.links) {
    LayerSummary& s = all[static_cast<std::size_t>(l.kind)];
    s.kind = l.kind;
    const double rate = l.capacity.value();
    if (s.links == 0 || rate < s.slowest) s.slowest = rate;
    ++s.links;
    s.cables += l.cables;
    s.total += rate;
    if (rate <= 0) ++s.down;
  }
  std::vector<LayerSummary> out;
  for (const LayerSummary& s : all) {
    if (s.links > 0) out.push_back(s);
  }
  return out;
}

double lone_rate(const Topology& t, const Route& r) {
  double rate = 0;
  for (const PathElement& e : r.path) {
    const double share = t.links[e.link.value].capacity.value() / e.weight;
    if (rate == 0 || share < rate) rate = share;
  }
  return rate;
}

std::vector<HopSummary> hops_of(const Topology& t) {
  const Router router(t);
  const int per_node = t.spec.node.gpus, nodes = t.spec.nodes;
  std::vector<HopSummary> out;
  const auto add = [&](const std::string& what, int gpu) {
    Route r = router.gpu_to_gpu(0, gpu);
    const double rate = lone_rate(t, r);
    out.push_back({what, std::move(r), rate});
  };
  if (per_node > 1) add("same node", 1);
  if (nodes > 1) add("next node, same rail", per_node);
  if (nodes > 1 && per_node > 1) add("next node, other rail", per_node + 1);
  const int unit = t.spec.fabric.nodes_per_unit;
  if (nodes > unit) add("next unit", unit * per_node);
  if (nodes > 1) add("last node", (nodes - 1) * per_node);
  return out;
}

ClusterQuestion question_of(const TopologyCommandOptions& o) {
  ClusterQuestion q;
  q.gpu = o.gpu, q.node = o.node, q.fabric = o.fabric, q.nodes = o.nodes;
  q.gpus_per_node = o.gpus_per_node;
  q.oversubscription = o.oversubscription;
  for (const std::string& text : o.faults) {
    const auto cut = text.find('=');
    LinkFault fault{text.substr(0, cut), 0.0};
    if (cut != std::string::npos) {
      char* end = nullptr;
      fault.factor = std::strtod(text.c_str() + cut + 1, &end);
      if (end == text.c_str() + cut + 1 || *end != '\0')
        throw UsageError(fmt::format("--fault '{}': no number after '='", text));
    }
    q.faults.push_back(fault);
  }
  return q;
}

std::string rate_text(double rate) {
  if (rate <= 0) return "down";
  return rate >= kTera ? fmt::format("{:.2f} TB/s", rate / kTera) : fmt::format("{:.1f} GB/s", rate / kGB);
}

void print_summary(const Topology& t, std::ostream& out) {
  const ClusterSpec& s = t.spec;
  out << fmt::format("{} nodes x {} GPUs = {} GPUs, node {}, fabric {}\n", s.nodes, s.node.gpus, s.gpus(), s.node.name,
                     s.fabric.name);
  if (s.nodes > 1) {
    out << fmt::format("{} tiers: {} leaf, {} spine, {} core switches of {} ports; {} routing\n", t.tiers,
                       t.leaf_switches, t.spine_switches, t.core_switches, s.fabric.switch_ports,
                       s.fabric.routing == Routing::adaptive ? "adaptive" : "hashed");
  }
  const auto reason = reason_to_unfold(s);
  out << (reason ? "equal replicas are simulated one by one: " + *reason : "equal replicas can be folded") << "\n\n";
  TextTable layers({"links", "count", "cables", "down", "slowest", "sum of one direction"});
  for (const LayerSummary& l : layers_of(t)) {
    const bool both_ways = l.kind == LinkClass::nvlink || l.kind == LinkClass::pcie || l.kind == LinkClass::nic ||
                           l.kind == LinkClass::socket;
    layers.add({to_string(l.kind), fmt::to_string(l.links), fmt::to_string(l.cables), fmt::to_string(l.down),
                rate_text(l.slowest), rate_text(both_ways ? l.total / 2 : l.total)});
  }
  out << layers.to_text() << '\n';
  TextTable hops({"from GPU 0 to", "switches", "links", "latency us", "one flow alone"});
  for (const HopSummary& h : hops_of(t)) {
    hops.add({h.what, fmt::to_string(h.route.switches), fmt::to_string(h.route.path.size()),
              fmt::format("{:.2f}", h.route.latency.microseconds()), rate_text(h.rate)});
  }
  out << hops.to_text();
}

void print_links(const Topology& t, const std::string& part, std::ostream& out) {
  TextTable table({"link", "class", "cables", "capacity", "latency us"});
  for (std::size_t l = 0; l < t.links.size(); ++l) {
    const std::string name = t.link_name(LinkId(l));
    if (name.find(part) == std::string::npos) continue;
    const Link& link = t.links[l];
    table.add({name, to_string(link.kind), fmt::to_string(link.cables), rate_text(link.capacity.value()),
               fmt::format("{:.2f}", link.latency.microseconds())});
  }
  if (table.empty()) throw UsageError(fmt::format("no link's name contains '{}'", part));
  out << table.to_text();
}

Json to_json(const Topology& t) {
  const ClusterSpec& s = t.spec;
  Json layers = Json::array(), hops = Json::array();
  for (const LayerSummary& l : layers_of(t)) {
    layers.push_back({{"class", to_string(l.kind)},
                      {"links", l.links},
                      {"cables", l.cables},
                      {"down", l.down},
                      {"slowest_bytes_per_s", l.slowest},
                      {"total_bytes_per_s", l.total}});
  }
  for (const HopSummary& h : hops_of(t)) {
    hops.push_back({{"to", h.what},
                    {"switches", h.route.switches},
                    {"latency_us", h.route.latency.microseconds()},
                    {"bytes_per_s", h.rate}});
  }
  const auto reason = reason_to_unfold(s);
  return Json{{"nodes", s.nodes},
              {"gpus", s.gpus()},
              {"node", s.node.name},
              {"fabric", s.fabric.name},
              {"tiers", t.tiers},
              {"leaf_switches", t.leaf_switches},
              {"spine_switches", t.spine_switches},
              {"core_switches", t.core_switches},
              {"foldable", !reason},
              {"reason_to_unfold", reason ? *reason : ""},
              {"layers", layers},
              {"hops", hops}};
}

}  // namespace

int run_topology_command(const TopologyCommandOptions& options, std::ostream& out) {
  if (options.nodes < 1) throw UsageError(fmt::format("--nodes must be at least 1, got {}", options.nodes));
  const Topology t = build_topology(load_cluster(question_of(options)));
  if (!options.svg.empty()) write_file_atomically(options.svg, topology_svg(t));
  if (options.json) {
    out << to_json(t).dump() << '\n';
  } else if (!options.links.empty()) {
    print_links(t, options.links, out);
  } else {
    print_summary(t, out);
  }
  return 0;
}

void add_topology_command(CLI::App& app, CommandContext& context) {
  CLI::App* topology = add_command(app, "topology", "look at a cluster's network",
                                   "k3sim topology show --fabric rail_fat_tree_400g --nodes 256");
  topology->require_subcommand(1);
  CLI::App* show = add_command(*topology, "show", "switches, links, hops and a drawing of a cluster",
                               "k3sim topology show --gpu h800_sxm --nodes 256 --oversubscription 2 --svg fabric.svg");
  const auto o = std::make_shared<TopologyCommandOptions>();
  show->add_option("--gpu", o->gpu, "profile in hardware_profiles/collectives (NVLink rate)")->capture_default_str();
  show->add_option("--node", o->node, "profile in hardware_profiles/node")->capture_default_str();
  show->add_option("--fabric", o->fabric, "profile in hardware_profiles/fabric")->capture_default_str();
  show->add_option("--nodes", o->nodes, "servers")->capture_default_str();
  show->add_option("--gpus-per-node", o->gpus_per_node, "fewer GPUs than the node profile has");
  show->add_option("--oversubscription", o->oversubscription, "of the leaves, down over up");
  show->add_option("--fault", o->faults,
                   "LINK=FACTOR, for example \"n0.nic3>leaf3=0.5\"; without a factor the link is down");
  show->add_option("--links", o->links, "list the links whose name contains this");
  show->add_option("--svg", o->svg, "draw into this file");
  add_json_flag(*show, context);
  show->callback([o, &context] {
    o->json = context.json;
    context.exit_code = run_topology_command(*o, context.out);
  });
}

}  // namespace k3sim
