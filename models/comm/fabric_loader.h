// Reads hardware_profiles/node/NODE.yaml and the `topology` part of hardware_profiles/fabric/FABRIC.yaml.
// Source: hardware_profiles/README.md (fields and units); hardware notes 2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/net/cluster_spec.h"

namespace k3sim {

struct ClusterQuestion {
  std::string gpu = "h100_sxm";  // collectives profile: achieved NVLink rate
  std::string node = "hgx8";
  std::string fabric = "rail_fat_tree_400g";
  int nodes = 1;
  int gpus_per_node = 0;                    // 0: as the node profile says
  double oversubscription = 0;              // 0: as the fabric profile says
  std::optional<Bandwidth> nic_override{};  // payload per GPU and direction
  std::vector<LinkFault> faults{};
};

// Fewer (or more) GPUs in the same kind of server: NICs in proportion.
void use_gpus_per_node(NodeSpec& node, int gpus);

// Throws ConfigError with every problem of the files.
ClusterSpec load_cluster(const ClusterQuestion& question);

}  // namespace k3sim
