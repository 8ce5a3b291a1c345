// Duration of one communication item of a layer, from its kind, group placement and the collective model.
//
// Expert dispatch and combine: bytes that leave the rank depend on the dispatcher. "alltoall" sends every row copy
// (tokens x topk); "allgather" gathers all tokens; "deepep" and "moonep" send a row once per distinct destination node
// over the network and fan out over NVLink once per distinct destination rank (hardware notes 3.5):
//   D(n) = n (1 - C(E - E/n, k) / C(E, k)) distinct destinations among n equal parts
//   t = t_fixed + max(network bytes / nic rate, NVLink bytes / NVLink rate)
// Source: k3-facts 3.6, hardware notes 3.5; valid for balanced routing.
#pragma once

#include "models/build/machine.h"
#include "models/build/moe_effects.h"
#include "models/build/placement.h"
#include "models/build/traffic.h"
#include "models/config/scenario.h"

namespace k3sim {

struct CommCost {
  Time time;
  Provenance provenance = Provenance::missing;
  Bytes network{0}, nvlink{0};  // payload leaving one rank
  Traffic traffic;              // the same for the flow engine; without the share that oversubscription leaves
  Traffic push = {};            // replicated expert weights, before the rows
};

class CommCoster {
 public:
  // network_share: fraction of the NIC rate left by the fabric (oversubscription).
  CommCoster(const Machine& machine, const Scenario& scenario, const Placement& placement);

  CommCost time(const CommOp& op) const;
  void set_moe(const MoeEffects& effects) { moe_ = effects; }
  CommCost collective(Collective kind, Bytes buffer, GroupKind group) const;
  // Over `ranks` members of the group: neighbouring ones (inner) or those one inner group apart (outer).
  CommCost subgroup(Collective kind, Bytes buffer, GroupKind group, int ranks, bool inner) const;
  // One pipeline hop of `bytes` from a rank to the same position of the neighbouring stage.
  CommCost pipeline_hop(Bytes bytes) const;
  // Expected number of distinct parts (of n) that hold the k experts of one token.
  static double distinct_parts(std::int64_t experts, std::int64_t topk, int parts);
  // The same for nodes, with group-limited routing.
  static double distinct_nodes(const CommOp& op, int nodes);

 private:
  CommGroup group(GroupKind kind) const;
  CommCost over(Collective kind, Bytes buffer, const CommGroup& group) const;
  CommCost balanced_exchange(const CommOp& op) const;
  CommCost expert_exchange(const CommOp& op) const;
  Traffic weight_push(Time alone) const;
  CommCost deduplicated_exchange(const CommOp& op, const CommGroup& g) const;

  const Machine& machine_;
  const Placement& placement_;
  std::string dispatcher_;
  double network_share_ = 1.0;
  MoeEffects moe_;
};

}  // namespace k3sim
