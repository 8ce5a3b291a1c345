// YAML to ClusterSpec; see the header.
// Source: field names as in sim/net/cluster_spec.h.
#include "models/comm/fabric_loader.h"

#include <algorithm>

#include "models/comm/collectives.h"
#include "models/config/data_files.h"
#include "models/config/yaml_reader.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

// The index of a word in a list; a Problem with a suggestion when it is not there.
int word_index(const YamlNode& node, const std::vector<std::string>& words) {
  const std::string text = node.text();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return static_cast<int>(i);
  }
  node.problem("unknown value '" + text + "'", did_you_mean(text, words));
  return 0;
}

NodeSpec load_node(const std::string& name) {
  const YamlDocument doc = YamlDocument::load(data_path("hardware_profiles/node/" + name + ".yaml"));
  const YamlNode root = doc.root();
  NodeSpec n;
  root.require("name", n.name);
  root.require("gpus", n.gpus);
  root.read("nvlink", n.nvlink);
  root.require("nvlink_latency", n.nvlink_latency);
  root.require("gpus_per_pcie_switch", n.gpus_per_pcie_switch);
  root.require("uplinks_per_pcie_switch", n.uplinks_per_pcie_switch);
  root.require("pcie", n.pcie);
  root.require("pcie_latency", n.pcie_latency);
  root.require("nics", n.nics);
  root.require("sockets", n.sockets);
  root.require("dram", n.dram);
  root.require("socket_link", n.socket_link);
  root.read("memory", n.memory);
  doc.finish();
  return n;
}

FabricSpec load_fabric(const std::string& name) {
  const YamlDocument doc = YamlDocument::load(data_path("hardware_profiles/fabric/" + name + ".yaml"));
  const YamlNode root = doc.root(), t = root.child("topology");
  FabricSpec f;
  root.require("name", f.name);
  f.kind = static_cast<FabricKind>(word_index(t.child("kind"), {"none", "rail_fat_tree", "leaf_spine", "multi_plane"}));
  f.routing = static_cast<Routing>(word_index(t.child("routing"), {"adaptive", "ecmp"}));
  t.require("link_rate", f.link_rate);
  t.require("payload_efficiency", f.payload_efficiency);
  t.require("switch_ports", f.switch_ports);
  t.require("nodes_per_unit", f.nodes_per_unit);
  t.require("oversubscription", f.oversubscription);
  t.read("core_oversubscription", f.core_oversubscription);
  t.require("routing_efficiency", f.routing_efficiency);
  t.read("planes_per_nic", f.planes_per_nic);
  t.read("flows_per_pair", f.flows_per_pair);
  t.read("pxn", f.pxn);
  int nodes_per_pod = 0;
  if (t.read("nodes_per_pod", nodes_per_pod) && f.nodes_per_unit > 0) {
    if (nodes_per_pod % f.nodes_per_unit != 0) {
      t.child("nodes_per_pod").problem("must be a multiple of nodes_per_unit " + std::to_string(f.nodes_per_unit));
    }
    f.units_per_pod = nodes_per_pod / f.nodes_per_unit;
  }
  const YamlNode latency = root.child("scale_out");
  latency.accept_all();  // the rest is read by load_scale_out
  latency.read("device_latency", f.device_latency);
  latency.read("switch_latency", f.switch_latency);
  doc.finish();
  return f;
}

}  // namespace

void use_gpus_per_node(NodeSpec& node, int gpus) {
  if (gpus == node.gpus) return;
  node.nics = std::max(1, node.nics * gpus / node.gpus);
  while (gpus % node.nics != 0 && node.nics % gpus != 0) --node.nics;
  node.sockets = std::max(1, std::min(node.sockets, gpus));
  if (gpus % node.gpus_per_pcie_switch != 0) node.gpus_per_pcie_switch = 1;
  node.gpus = gpus;
}

ClusterSpec load_cluster(const ClusterQuestion& q) {
  ClusterSpec spec;
  spec.nodes = q.nodes;
  spec.faults = q.faults;
  spec.node = load_node(q.node);
  spec.fabric = load_fabric(q.fabric);
  if (spec.node.nvlink.value() <= 0) {
    spec.node.nvlink = load_comm_model(data_path("hardware_profiles/collectives/" + q.gpu + ".yaml")).p2p_rate;
  }
  if (q.gpus_per_node > 0) use_gpus_per_node(spec.node, q.gpus_per_node);
  if (q.oversubscription > 0) spec.fabric.oversubscription = q.oversubscription;
  if (q.nic_override) {
    spec.fabric.link_rate = *q.nic_override * (1.0 / spec.fabric.payload_efficiency);
  }
  return spec;
}

}  // namespace k3sim
