// Collectives as flows over a topology, for links that are shared. One file per algorithm (flows_*.cpp); each puts the
// bytes that the algorithm moves on the links that it uses. Undisturbed, a plan takes the time of collective_time.
// Source: engine-design notes section 6; algorithms: see the files.
#pragma once

#include <span>
#include <vector>

#include "models/comm/collectives.h"
#include "models/comm/link_loads.h"
#include "sim/net/network_progress.h"
#include "sim/net/router.h"

namespace k3sim {

// Ranks of one group as global GPU numbers, the members of a node side by side; every node holds equally many.
struct PlacedGroup {
  std::vector<int> gpus;  // by rank
  int per_node = 1;
  int ranks() const { return static_cast<int>(gpus.size()); }
  int nodes() const { return ranks() / per_node; }
  int gpu(int node, int local) const { return gpus[static_cast<std::size_t>(node * per_node + local)]; }
};
// Throws ConfigError when members of a node are not adjacent or nodes hold different numbers.
PlacedGroup place_group(const Topology& topology, std::span<const int> gpus);
CommGroup comm_group(const PlacedGroup& group);

// Rows that a rank sends once per destination node, fanned out over NVLink there (and the reverse).
struct TwoHopBytes {
  Bytes network;     // leaving one rank for all other nodes
  Bytes nvlink;      // leaving one rank over NVLink, own fan-out included
  Time free_time{};  // calibrated duration on a free network
  Time latency{};
};

// What one algorithm needs to know.
struct FlowContext {
  const Topology& topology;
  const Router& router;
  const PlacedGroup& group;
  LinkLoads& loads;
};

// Each adds the algorithm's loads for a buffer of `bytes` (nccl-tests size).
void add_ring_loads(const FlowContext& c, double bytes, Collective kind);
void add_tree_loads(const FlowContext& c, double bytes, bool in_switch);  // all_reduce; in_switch: NVLS inside nodes
void add_nvls_loads(const FlowContext& c, double bytes);                  // all_reduce in one domain
void add_pat_loads(const FlowContext& c, double bytes);         // all_gather / reduce_scatter, 1 rank per node
void add_all_to_all_loads(const FlowContext& c, double bytes);  // with PXN; one domain: NVLink only
void add_two_hop_loads(const FlowContext& c, const TwoHopBytes& bytes);
void add_message_loads(const FlowContext& c, double bytes);  // rank 0 to rank 1

// The one of the above that stands for the algorithm.
void add_algorithm_loads(const FlowContext& c, Algorithm algorithm, Collective kind, double bytes);

// The plan that runs `kind` as the tuner would.
FlowPlan collective_flows(const CommModel& model, const Router& router, const Topology& topology, Collective kind,
                          Bytes buffer, const PlacedGroup& group, LinkLoads& scratch);
FlowPlan two_hop_flows(const Router& router, const Topology& topology, const TwoHopBytes& bytes,
                       const PlacedGroup& group, LinkLoads& scratch);
// Three stages: reduce-scatter in the node, all_reduce on each rail, all_gather in the node (not NCCL's choice, but
// that of frameworks that split a group in two).
FlowPlan hierarchical_all_reduce_flows(const CommModel& model, const Router& router, const Topology& topology,
                                       Bytes buffer, const PlacedGroup& group, LinkLoads& scratch);

}  // namespace k3sim
