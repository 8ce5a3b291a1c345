// Which ranks form a process group and how the group lies on the nodes.
//
// Megatron rank order "tp-cp-ep-dp-pp": the first name varies fastest. Dense groups use the axes tp, cp, dp, pp (ep is
// folded into dp and cp); expert groups use etp, ep, expert_dp, pp over the same ranks. Group size and stride give the
// number of group members per node: consecutive ranks fill a node.
// Source: Megatron-LM megatron/core/parallel_state.py (RankGenerator); engine-design section 7.
#pragma once

#include <vector>

#include "models/config/scenario.h"
#include "models/transformer/program.h"

namespace k3sim {

// A group as the network sees it; every group of one kind has the same placement when ranks fill nodes evenly.
struct GroupPlacement {
  int ranks = 1;
  int stride = 1;          // rank distance between neighbours of the group
  int ranks_per_node = 1;  // members on one node
  int nodes = 1;
  int concurrent = 1;  // groups of this kind that share a node (and its NICs) at the same time
};

class Placement {
 public:
  // Requires: degrees resolved (dp > 0), tp*cp*dp*pp == gpus.
  Placement(const ParallelConfig& parallel, int gpus_per_node);

  GroupPlacement group(GroupKind kind) const;
  int world() const { return tp_ * cp_ * dp_ * pp_; }
  // Ranks of one pipeline stage (all tp, cp, dp members): consecutive positions 0 ... replicas()-1.
  int replicas() const { return tp_ * cp_ * dp_; }
  int pp() const { return pp_; }
  // Members (replica numbers) of the group of `kind` that contains replica `r`; not for GroupKind::pp.
  std::vector<int> members(GroupKind kind, int replica) const;
  // Whether the neighbours of a pipeline hop sit on one node.
  bool pp_hop_within_node() const { return gpus_per_node_ >= 2 * replicas(); }

 private:
  int size(GroupKind kind) const;
  int stride(GroupKind kind) const;

  int tp_, cp_, dp_, pp_, ep_, etp_, gpus_per_node_;
  std::vector<std::pair<GroupKind, int>> dense_axes_, expert_axes_;  // fastest first
};

}  // namespace k3sim
