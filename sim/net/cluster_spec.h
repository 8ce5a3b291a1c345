// What a cluster's network is made of, as plain numbers; build_topology turns it into vertices and links.
// Rates are per direction. Payload efficiency (headers, protocol) is applied to fabric links by the builder.
// Source: hardware notes 2.1 (node), 2.2-2.3 (fabrics), 2.5 (hashing).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

struct NodeSpec {
  std::string name;
  int gpus = 8;
  Bandwidth nvlink;  // achieved per GPU; the switch core is non-blocking
  Time nvlink_latency{};
  int gpus_per_pcie_switch = 1;
  int uplinks_per_pcie_switch = 1;
  Bandwidth pcie;  // achieved per x16 link
  Time pcie_latency{};
  int nics = 8;           // spread evenly over the GPUs
  int sockets = 2;        // NUMA domains
  Bandwidth dram;         // per socket, reads plus writes
  Bandwidth socket_link;  // between two sockets
  Bytes memory{0};        // host memory of the node; 0: not stated
};

enum class FabricKind : std::uint8_t {
  none,           // one node
  rail_fat_tree,  // leaf r of a unit connects the r-th NIC of its nodes; spines join everything
  leaf_spine,     // one leaf per unit for all NICs of its nodes
  multi_plane,    // as rail_fat_tree, but every rail has spines of its own
};
enum class Routing : std::uint8_t { adaptive, ecmp };

struct FabricSpec {
  std::string name;
  FabricKind kind = FabricKind::none;
  Bandwidth link_rate;              // line rate of a NIC and of a switch port
  double payload_efficiency = 1.0;  // payload over line rate
  int switch_ports = 64;
  int nodes_per_unit = 32;        // nodes under one set of leaves
  double oversubscription = 1.0;  // leaf: down over up
  double core_oversubscription = 1.0;
  int units_per_pod = 0;   // units under one spine layer; 0: as many as the switches allow
  int planes_per_nic = 1;  // 2: dual-ToR, each port of half the rate in a plane of its own
  Routing routing = Routing::adaptive;
  double routing_efficiency = 1.0;  // of an adaptive trunk
  int flows_per_pair = 1;           // equal flows that a message is split into under ecmp
  bool pxn = true;                  // cross-rail traffic changes rail over NVLink
  Time device_latency{};            // NIC, software excluded
  Time switch_latency{};
};

// A link or NIC that is slower than it should be, or gone.
struct LinkFault {
  std::string link;     // name as `topology show` prints it, for example "n3.nic5>leaf0.5"; both directions suffer
  double factor = 0.0;  // of its capacity; 0: down
};

struct ClusterSpec {
  NodeSpec node;
  FabricSpec fabric;
  int nodes = 1;
  std::vector<LinkFault> faults{};
  int gpus() const { return nodes * node.gpus; }
};

}  // namespace k3sim
