// k3sim topology show: what a cluster's network consists of, where it is narrow, and a drawing.
// Source: product-spec section 2.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/net/topology.h"

namespace k3sim {

struct TopologyCommandOptions {
  std::string gpu = "h100_sxm";
  std::string node = "hgx8";
  std::string fabric = "rail_fat_tree_400g";
  int nodes = 32;
  int gpus_per_node = 0;            // 0: as the node profile says
  double oversubscription = 0;      // 0: as the fabric profile says
  std::vector<std::string> faults;  // "n0.nic3>leaf3=0.5"; without "=", down
  std::string svg;                  // file to draw into
  std::string links;                // print the links whose name contains this
  bool json = false;
};

int run_topology_command(const TopologyCommandOptions& options, std::ostream& out);

// A server on the left, the fabric on the right; narrow layers in red.
std::string topology_svg(const Topology& topology);

}  // namespace k3sim
