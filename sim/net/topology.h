// Vertices and directed links of a cluster in flat arrays; a full-duplex cable is two links.
//   NVSwitch domain: one vertex, so only the egress and ingress of each GPU can be short (non-blocking core)
//   adaptive routing: the uplinks of a leaf form one trunk link to the spine layer (capacity x efficiency)
//   ecmp: every uplink is a link of its own, so that collisions are visible
// Construction is checked with Boost.Graph (topology_checks.h); the router and the flow engine only use link ids.
// Source: engine-design notes section 5 (modelling rules).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/net/cluster_spec.h"

namespace k3sim {

enum class VertexKind : std::uint8_t { gpu, nvswitch, pcie_switch, nic, host, memory, leaf, spine, core };
enum class LinkClass : std::uint8_t { nvlink, pcie, socket, dram, nic, leaf_up, leaf_down, core_up, core_down };
constexpr int kLinkClasses = 9;
const char* to_string(VertexKind kind);
const char* to_string(LinkClass kind);

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  std::int32_t node = -1;  // server; -1 for fabric switches
  std::int32_t index = 0;  // within the server, or of its kind
};

struct Link {
  std::uint32_t from = 0, to = 0;
  LinkClass kind = LinkClass::nvlink;
  std::uint32_t cables = 1;  // physical links in it
  Bandwidth capacity;        // achieved payload; 0: down
  Time latency{};
};

// Link ids by position, written by the builder and read by the router. kNoLink where there is none.
constexpr std::uint32_t kNoLink = 0xffffffffU;
struct NodeLinks {
  std::vector<std::uint32_t> nvlink_out, nvlink_in;   // by GPU
  std::vector<std::uint32_t> pcie_up, pcie_down;      // by GPU: to and from its switch
  std::vector<std::uint32_t> host_up, host_down;      // by PCIe switch: to and from its socket
  std::vector<std::uint32_t> nic_in, nic_out;         // by NIC: PCIe switch to NIC, NIC to PCIe switch
  std::vector<std::uint32_t> dram;                    // by socket
  std::vector<std::uint32_t> socket;                  // by (from, to)
  std::vector<std::uint32_t> fabric_up, fabric_down;  // by (NIC, plane)
  std::vector<std::uint32_t> leaf;                    // by (NIC, plane): index into leaves
};
struct LeafLinks {
  std::uint32_t vertex = 0;
  std::int32_t group = 0;               // pod (and plane): leaves of one group share spines
  std::vector<std::uint32_t> up, down;  // by uplink; one trunk under adaptive routing
};
struct GroupLinks {                     // one spine layer
  std::int32_t core_group = 0;          // groups that the core joins
  std::vector<std::uint32_t> up, down;  // to and from the core; empty in two tiers
};

struct Topology {
  ClusterSpec spec;
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  std::vector<NodeLinks> nodes;
  std::vector<LeafLinks> leaves;
  std::vector<GroupLinks> groups;
  int tiers = 0;
  int leaf_switches = 0, spine_switches = 0, core_switches = 0;  // physical counts, trunks notwithstanding

  std::string vertex_name(std::uint32_t v) const;
  std::string link_name(LinkId l) const;  // "from>to", with "#k" for parallel uplinks
  std::vector<Bandwidth> capacities() const;
  int pcie_switch_of(int gpu) const { return gpu / spec.node.gpus_per_pcie_switch; }
  int socket_of(int gpu) const { return gpu * spec.node.sockets / spec.node.gpus; }
  int nic_of(int gpu) const { return gpu * spec.node.nics / spec.node.gpus; }
};

// Throws ConfigError with every contradiction of the spec (ports that do not add up, unknown fault names, ...).
Topology build_topology(const ClusterSpec& spec);

}  // namespace k3sim
