// Paths through a topology as lists of link ids with weights.
//   GPU to GPU in one server: egress, ingress of NVLink
//   between servers: [NVLink to the local peer on the destination's rail (PXN)] PCIe, NIC, leaf [spine [core]] NIC,
//   PCIe adaptive: the leaf's trunk.  ecmp: the uplink chosen by a stable hash of (source NIC, destination NIC, key,
//   flow); a message split into flows_per_pair equal flows loads each chosen uplink with its share
// A NIC whose link is down is replaced by the next one of the server; a dead uplink is never chosen.
// Source: engine-design notes section 5; hardware notes 3.4 (PXN), 2.5 (hashing).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/net/flow_table.h"
#include "sim/net/topology.h"

namespace k3sim {

struct Route {
  std::vector<PathElement> path;
  Time latency{};    // of all links on the way
  int switches = 0;  // fabric switches passed
};

class Router {
 public:
  // Requires: the topology outlives the router.
  explicit Router(const Topology& topology) : t_(&topology) {}

  // GPUs are numbered node by node. `key` distinguishes concurrent flows of one pair (queue pairs, ports).
  Route gpu_to_gpu(int from, int to, std::uint64_t key = 0) const;
  Route host_to_gpu(int gpu) const;
  Route gpu_to_host(int gpu) const;
  // NIC to NIC, without the servers' inner links.
  Route nic_to_nic(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t key = 0) const;

 private:
  void add(Route& r, std::uint32_t link, double weight = 1.0) const;
  void nvlink(Route& r, int node, int from, int to) const;
  void fabric(Route& r, std::uint32_t leaf_from, std::uint32_t leaf_to, std::uint64_t hash, double share) const;
  void one_flow(Route& r, std::size_t up, std::size_t down, int node_from, int node_to, std::uint64_t hash,
                double share) const;
  std::uint32_t live(const std::vector<std::uint32_t>& candidates, const std::vector<std::uint32_t>& partners,
                     std::uint64_t hash) const;
  int live_nic(int node, int nic) const;
  bool up(std::uint32_t link) const { return link != kNoLink && t_->links[link].capacity.value() > 0; }

  const Topology* t_;
};

}  // namespace k3sim
