// Builds servers and fabric from a ClusterSpec.
//   uplinks of a leaf = round(ports down x port rate / (oversubscription x link rate)), at least 1
//   two tiers while one spine layer reaches every leaf (leaves <= switch ports), else pods of ports/2 leaves and a core
// The last unit may be filled partly; its leaves keep all their uplinks.
// Source: hardware notes 2.1 (node), 2.2 (switch counts: 512 GPUs 16+8, 4,096 GPUs 128+128+64).
#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/net/topology.h"
#include "sim/net/topology_checks.h"

namespace k3sim {
namespace {

class Builder {
 public:
  explicit Builder(const ClusterSpec& spec) : node_(spec.node), fabric_(spec.fabric) { out_.spec = spec; }

  Topology build() {
    for (int n = 0; n < out_.spec.nodes; ++n) build_node(n);
    if (fabric_.kind != FabricKind::none && out_.spec.nodes > 1) build_fabric();
    return std::move(out_);
  }

 private:
  std::uint32_t vertex(VertexKind kind, int node, int index) {
    out_.vertices.push_back({kind, node, index});
    return static_cast<std::uint32_t>(out_.vertices.size() - 1);
  }

  std::uint32_t link(std::uint32_t from, std::uint32_t to, LinkClass kind, Bandwidth rate, Time latency,
                     int cables = 1) {
    out_.links.push_back({from, to, kind, static_cast<std::uint32_t>(cables), rate, latency});
    return static_cast<std::uint32_t>(out_.links.size() - 1);
  }

  void build_node(int n) {
    NodeLinks& x = out_.nodes.emplace_back();
    const auto socket = build_sockets(n, x);
    std::vector<std::uint32_t> pcie;
    for (int p = 0; p * node_.gpus_per_pcie_switch < node_.gpus; ++p) {
      pcie.push_back(vertex(VertexKind::pcie_switch, n, p));
      const auto s = static_cast<std::size_t>(out_.socket_of(p * node_.gpus_per_pcie_switch));
      const Bandwidth rate = node_.pcie * static_cast<double>(node_.uplinks_per_pcie_switch);
      x.host_up.push_back(
          link(pcie.back(), socket[s], LinkClass::pcie, rate, node_.pcie_latency, node_.uplinks_per_pcie_switch));
      x.host_down.push_back(
          link(socket[s], pcie.back(), LinkClass::pcie, rate, node_.pcie_latency, node_.uplinks_per_pcie_switch));
    }
    const std::uint32_t nvswitch = vertex(VertexKind::nvswitch, n, 0);
    const Time half = Time::ps(node_.nvlink_latency.picoseconds() / 2);
    for (int g = 0; g < node_.gpus; ++g) {
      const std::uint32_t gpu = vertex(VertexKind::gpu, n, g);
      const std::uint32_t up = pcie[static_cast<std::size_t>(out_.pcie_switch_of(g))];
      x.nvlink_out.push_back(link(gpu, nvswitch, LinkClass::nvlink, node_.nvlink, half));
      x.nvlink_in.push_back(link(nvswitch, gpu, LinkClass::nvlink, node_.nvlink, node_.nvlink_latency - half));
      x.pcie_up.push_back(link(gpu, up, LinkClass::pcie, node_.pcie, node_.pcie_latency));
      x.pcie_down.push_back(link(up, gpu, LinkClass::pcie, node_.pcie, node_.pcie_latency));
    }
    for (int k = 0; k < node_.nics; ++k) {
      const std::uint32_t nic = vertex(VertexKind::nic, n, k);
      const std::uint32_t at = pcie[static_cast<std::size_t>(out_.pcie_switch_of(k * node_.gpus / node_.nics))];
      x.nic_in.push_back(link(at, nic, LinkClass::pcie, node_.pcie, node_.pcie_latency));
      x.nic_out.push_back(link(nic, at, LinkClass::pcie, node_.pcie, node_.pcie_latency));
      nic_vertices_.push_back(nic);
    }
  }

  std::vector<std::uint32_t> build_sockets(int n, NodeLinks& x) {
    std::vector<std::uint32_t> socket;
    for (int s = 0; s < node_.sockets; ++s) {
      socket.push_back(vertex(VertexKind::host, n, s));
      const std::uint32_t memory = vertex(VertexKind::memory, n, s);
      x.dram.push_back(link(socket.back(), memory, LinkClass::dram, node_.dram, Time()));
    }
    for (const std::uint32_t a : socket) {
      for (const std::uint32_t b : socket) {
        x.socket.push_back(a == b ? kNoLink : link(a, b, LinkClass::socket, node_.socket_link, Time()));
      }
    }
    return socket;
  }

  Bandwidth port_rate() const { return fabric_.link_rate * (fabric_.payload_efficiency / fabric_.planes_per_nic); }

  void build_fabric() {
    const bool rails = fabric_.kind != FabricKind::leaf_spine;
    const int units = (out_.spec.nodes + fabric_.nodes_per_unit - 1) / fabric_.nodes_per_unit;
    const int rail_count = rails ? node_.nics : 1;
    const int planes = fabric_.planes_per_nic;
    const int ports_down = fabric_.nodes_per_unit * node_.nics / rail_count;
    const double down_rate = ports_down / static_cast<double>(planes);
    const int uplinks = std::max(1, static_cast<int>(std::lround(down_rate / fabric_.oversubscription)));
    // Leaves that must meet in one spine layer: all rails of a unit, unless every rail has a plane of its own.
    const int meeting = fabric_.kind == FabricKind::multi_plane ? 1 : rail_count;
    const bool three_tiers = units * meeting > fabric_.switch_ports || fabric_.units_per_pod > 0;
    int per_pod = units;
    if (three_tiers) {
      per_pod = fabric_.units_per_pod > 0 ? fabric_.units_per_pod : std::max(1, fabric_.switch_ports / 2 / meeting);
    }
    const int pods = (units + per_pod - 1) / per_pod;
    const int layers = planes * (fabric_.kind == FabricKind::multi_plane ? rail_count : 1);
    out_.tiers = pods > 1 ? 3 : 2;
    for (int g = 0; g < pods * layers; ++g) build_group(g, g % layers, std::min(per_pod, units) * meeting * uplinks);
    for (int u = 0; u < units; ++u) {
      for (int r = 0; r < rail_count; ++r) {
        for (int p = 0; p < planes; ++p) {
          const int layer = fabric_.kind == FabricKind::multi_plane ? r * planes + p : p;
          build_leaf(u, r, p, {.group = (u / per_pod) * layers + layer, .uplinks = uplinks, .rails = rails});
        }
      }
    }
    count_switches(uplinks, pods);
  }

  struct LeafShape {
    int group = 0, uplinks = 1;
    bool rails = true;
  };

  void build_leaf(int unit, int rail, int plane, const LeafShape& shape) {
    const int index = static_cast<int>(out_.leaves.size());
    LeafLinks& leaf = out_.leaves.emplace_back();
    leaf.vertex = vertex(VertexKind::leaf, -1, index);
    leaf.group = shape.group;
    const int last = std::min(out_.spec.nodes, (unit + 1) * fabric_.nodes_per_unit);
    for (int n = unit * fabric_.nodes_per_unit; n < last; ++n) {
      for (int k = 0; k < node_.nics; ++k) {
        if (!shape.rails || k == rail) connect_nic(n, k, plane, index);
      }
    }
    const Bandwidth rate = fabric_.link_rate * fabric_.payload_efficiency;
    const std::uint32_t spine = spine_vertices_[static_cast<std::size_t>(shape.group)];
    connect(leaf.vertex, spine, {rate, shape.uplinks, LinkClass::leaf_up, LinkClass::leaf_down}, leaf.up, leaf.down);
  }

  void connect_nic(int n, int k, int plane, int leaf) {
    NodeLinks& x = out_.nodes[static_cast<std::size_t>(n)];
    const auto slots = static_cast<std::size_t>(node_.nics * fabric_.planes_per_nic);
    x.fabric_up.resize(slots, kNoLink);
    x.fabric_down.resize(slots, kNoLink);
    x.leaf.resize(slots, kNoLink);
    const auto at = static_cast<std::size_t>(k * fabric_.planes_per_nic + plane);
    const std::uint32_t nic = nic_vertices_[static_cast<std::size_t>(n * node_.nics + k)];
    const std::uint32_t sw = out_.leaves[static_cast<std::size_t>(leaf)].vertex;
    x.fabric_up[at] = link(nic, sw, LinkClass::nic, port_rate(), fabric_.device_latency);
    x.fabric_down[at] = link(sw, nic, LinkClass::nic, port_rate(), fabric_.switch_latency);
    x.leaf[at] = static_cast<std::uint32_t>(leaf);
  }

  struct Cable {
    Bandwidth rate;
    int count;
    LinkClass up, down;
  };

  // One trunk under adaptive routing, separate links under ecmp.
  void connect(std::uint32_t lower, std::uint32_t upper, const Cable& c, std::vector<std::uint32_t>& up,
               std::vector<std::uint32_t>& down) {
    const bool trunk = fabric_.routing == Routing::adaptive;
    const Bandwidth rate = trunk ? c.rate * (c.count * fabric_.routing_efficiency) : c.rate;
    for (int i = 0; i < (trunk ? 1 : c.count); ++i) {
      up.push_back(link(lower, upper, c.up, rate, fabric_.switch_latency, trunk ? c.count : 1));
      down.push_back(link(upper, lower, c.down, rate, fabric_.switch_latency, trunk ? c.count : 1));
    }
  }

  // A spine layer is one vertex: which of its switches a flow takes is the choice of the uplink.
  void build_group(int index, int layer, int cables_below) {
    GroupLinks& group = out_.groups.emplace_back();
    group.core_group = layer;
    spine_vertices_.push_back(vertex(VertexKind::spine, -1, index));
    if (out_.tiers < 3) return;
    const auto core = static_cast<std::size_t>(layer);
    if (core_vertices_.size() <= core) core_vertices_.push_back(vertex(VertexKind::core, -1, layer));
    const int cables = std::max(1, static_cast<int>(std::lround(cables_below / fabric_.core_oversubscription)));
    const Bandwidth rate = fabric_.link_rate * fabric_.payload_efficiency;
    connect(spine_vertices_.back(), core_vertices_[core], {rate, cables, LinkClass::core_up, LinkClass::core_down},
            group.up, group.down);
  }

  void count_switches(int uplinks, int pods) {
    const int ports = fabric_.switch_ports;
    const auto ceil_div = [](long a, long b) { return static_cast<int>((a + b - 1) / b); };
    out_.leaf_switches = static_cast<int>(out_.leaves.size());
    const long cables = static_cast<long>(out_.leaves.size()) * uplinks;
    if (pods == 1) {
      const auto groups = static_cast<long>(out_.groups.size());
      out_.spine_switches = static_cast<int>(groups) * ceil_div(cables, groups * ports);
      return;
    }
    out_.spine_switches = ceil_div(cables, ports / 2);
    long core_cables = 0;
    for (const GroupLinks& g : out_.groups) {
      for (const std::uint32_t l : g.up) core_cables += out_.links[l].cables;
    }
    out_.core_switches = ceil_div(core_cables, ports);
  }

  NodeSpec node_;
  FabricSpec fabric_;
  Topology out_;
  std::vector<std::uint32_t> nic_vertices_, spine_vertices_, core_vertices_;
};

void apply_faults(Topology& t) {
  std::vector<Problem> problems;
  for (const LinkFault& fault : t.spec.faults) {
    bool found = false;
    for (std::size_t l = 0; l < t.links.size(); ++l) {
      const std::string name = t.link_name(LinkId(l));
      const auto cut = name.find('>');
      const auto hash = name.find('#');
      const std::string reverse = name.substr(cut + 1, hash - cut - 1) + ">" + name.substr(0, cut) +
                                  (hash == std::string::npos ? "" : name.substr(hash));
      if (name != fault.link && reverse != fault.link) continue;
      t.links[l].capacity = t.links[l].capacity * fault.factor;
      found = true;
    }
    if (!found) problems.push_back({{}, "faults", "there is no link '" + fault.link + "'", "see k3sim topology show"});
    if (fault.factor < 0 || fault.factor > 1) {
      problems.push_back(
          {{}, "faults", fmt::format("factor {} of '{}' must be in 0 ... 1", fault.factor, fault.link), {}});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

Topology build_topology(const ClusterSpec& spec) {
  check_spec(spec);
  Topology t = Builder(spec).build();
  if (!spec.faults.empty()) apply_faults(t);
  check_topology(t);
  return t;
}

}  // namespace k3sim
