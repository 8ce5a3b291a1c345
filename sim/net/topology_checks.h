// Is this cluster possible, and does everything reach everything? Checked once, with Boost.Graph.
// Source: engine-design notes section 5 (Boost.Graph for construction and checking, flat arrays for the hot path).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/net/topology.h"

namespace k3sim {

// Throws ConfigError with every contradiction: ports that do not add up, NICs that do not divide the GPUs, ...
void check_spec(const ClusterSpec& spec);
// Throws ConfigError naming a GPU that can no longer reach the others over links that are up.
void check_topology(const Topology& t);
// Fewest links between two vertices over links that are up; -1 when there is no way.
int hop_distance(const Topology& t, std::uint32_t from, std::uint32_t to);

// Why replicas must not be folded into one on this network (oversubscribed, partly filled, hashed or faulty fabric);
// nothing when equal ranks really see equal networks.
std::optional<std::string> reason_to_unfold(const ClusterSpec& spec);

}  // namespace k3sim
