// Checks of specs and built topologies; see the header.
// Source: Boost.Graph strong_components and breadth_first_search over the links that are up.
#include "sim/net/topology_checks.h"

#include <fmt/format.h>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <utility>

#include "sim/base/error.h"

namespace k3sim {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;

Graph graph_of_live_links(const Topology& t) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(t.links.size() + t.links.size() / 8);
  for (const Link& l : t.links) {
    if (l.capacity.value() <= 0) continue;
    edges.emplace_back(l.from, l.to);
    if (l.kind == LinkClass::dram) edges.emplace_back(l.to, l.from);  // one resource for reads and writes
  }
  return Graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), t.vertices.size());
}

void check_node(const NodeSpec& n, std::vector<Problem>& problems) {
  const auto need = [&](bool good, const char* key, std::string what) {
    if (!good) problems.push_back({{}, key, std::move(what), {}});
  };
  need(n.gpus >= 1, "node.gpus", fmt::format("must be at least 1, got {}", n.gpus));
  need(n.nvlink.value() > 0, "node.nvlink", "must be positive");
  need(n.pcie.value() > 0, "node.pcie", "must be positive");
  need(n.dram.value() > 0, "node.dram", "must be positive");
  need(n.sockets >= 1 && n.sockets <= n.gpus, "node.sockets",
       fmt::format("must be 1 ... {}, got {}", n.gpus, n.sockets));
  need(n.sockets == 1 || n.socket_link.value() > 0, "node.socket_link", "must be positive");
  need(n.gpus_per_pcie_switch >= 1 && n.gpus % std::max(1, n.gpus_per_pcie_switch) == 0, "node.gpus_per_pcie_switch",
       fmt::format("{} does not divide {} GPUs", n.gpus_per_pcie_switch, n.gpus));
  need(n.uplinks_per_pcie_switch >= 1, "node.uplinks_per_pcie_switch", "must be at least 1");
  need(n.nics >= 1 && (n.gpus % n.nics == 0 || n.nics % n.gpus == 0), "node.nics",
       fmt::format("{} NICs and {} GPUs: one must divide the other", n.nics, n.gpus));
}

void check_fabric(const FabricSpec& f, const NodeSpec& n, std::vector<Problem>& problems) {
  const auto need = [&](bool good, const char* key, std::string what) {
    if (!good) problems.push_back({{}, key, std::move(what), {}});
  };
  need(f.link_rate.value() > 0, "fabric.link_rate", "must be positive");
  need(f.payload_efficiency > 0 && f.payload_efficiency <= 1, "fabric.payload_efficiency", "must be in (0, 1]");
  need(f.routing_efficiency > 0 && f.routing_efficiency <= 1, "fabric.routing_efficiency", "must be in (0, 1]");
  need(f.oversubscription > 0, "fabric.oversubscription", "must be positive");
  need(f.core_oversubscription > 0, "fabric.core_oversubscription", "must be positive");
  need(f.planes_per_nic >= 1, "fabric.planes_per_nic", "must be at least 1");
  need(f.flows_per_pair >= 1, "fabric.flows_per_pair", "must be at least 1");
  if (f.nodes_per_unit < 1 || f.oversubscription <= 0 || f.planes_per_nic < 1) {
    need(f.nodes_per_unit >= 1, "fabric.nodes_per_unit", "must be at least 1");
    return;
  }
  const bool rails = f.kind != FabricKind::leaf_spine;
  const int down = f.nodes_per_unit * (rails ? 1 : n.nics);
  const double up = down / f.oversubscription / f.planes_per_nic;
  const double full_ports = down / static_cast<double>(f.planes_per_nic) + up;
  need(full_ports <= f.switch_ports + 0.5, "fabric.nodes_per_unit",
       fmt::format("a leaf needs {:.0f} ports of full rate, but a switch has {}", full_ports, f.switch_ports));
}

}  // namespace

void check_spec(const ClusterSpec& spec) {
  std::vector<Problem> problems;
  if (spec.nodes < 1) problems.push_back({{}, "nodes", fmt::format("must be at least 1, got {}", spec.nodes), {}});
  check_node(spec.node, problems);
  if (spec.fabric.kind != FabricKind::none) {
    check_fabric(spec.fabric, spec.node, problems);
  } else if (spec.nodes > 1) {
    problems.push_back({{}, "fabric", fmt::format("{} nodes need a fabric", spec.nodes), {}});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

void check_topology(const Topology& t) {
  const Graph graph = graph_of_live_links(t);
  std::vector<std::size_t> component(t.vertices.size());
  const auto ids = boost::get(boost::vertex_index, graph);
  boost::strong_components(graph, boost::make_iterator_property_map(component.begin(), ids));
  std::size_t first = t.vertices.size();
  for (std::size_t v = 0; v < t.vertices.size(); ++v) {
    if (t.vertices[v].kind != VertexKind::gpu) continue;
    if (first == t.vertices.size()) first = v;
    if (component[v] == component[first]) continue;
    throw ConfigError(
        fmt::format("{} and {} cannot reach each other over links that are up",
                    t.vertex_name(static_cast<std::uint32_t>(first)), t.vertex_name(static_cast<std::uint32_t>(v))),
        "fabric");
  }
}

int hop_distance(const Topology& t, std::uint32_t from, std::uint32_t to) {
  const Graph graph = graph_of_live_links(t);
  std::vector<int> distance(t.vertices.size(), -1);
  const auto ids = boost::get(boost::vertex_index, graph);
  const auto map = boost::make_iterator_property_map(distance.begin(), ids);
  distance[from] = 0;
  boost::breadth_first_search(
      graph, from, boost::visitor(boost::make_bfs_visitor(boost::record_distances(map, boost::on_tree_edge()))));
  return distance[to];
}

std::optional<std::string> reason_to_unfold(const ClusterSpec& spec) {
  const FabricSpec& f = spec.fabric;
  if (!spec.faults.empty()) return fmt::format("{} degraded or missing links", spec.faults.size());
  if (f.kind == FabricKind::none || spec.nodes == 1) return std::nullopt;
  if (f.oversubscription > 1.0) return fmt::format("leaves are oversubscribed {}:1", f.oversubscription);
  if (f.core_oversubscription > 1.0) return fmt::format("the core is oversubscribed {}:1", f.core_oversubscription);
  if (f.routing == Routing::ecmp) return "flows are hashed onto uplinks";
  if (spec.nodes > f.nodes_per_unit && spec.nodes % f.nodes_per_unit != 0) {
    return fmt::format("the last unit holds {} of {} nodes", spec.nodes % f.nodes_per_unit, f.nodes_per_unit);
  }
  return std::nullopt;
}

}  // namespace k3sim
