// Newton-Schulz time of the matrices whose owner is one rank.
// A matrix is orthogonalised whole by one owner; matrices of a layer are spread evenly over the shard group, so a rank
// does 1/shards of the work (ideal balance; experts are natural units). Per-head Muon treats q, k, v head by head.
// Source: k3-facts 2.10 (245 PFLOP per step for K3).
#pragma once

#include <vector>

#include "models/build/step_plan.h"

namespace k3sim {

struct MuonMatrix {
  std::int64_t count = 1, m = 0, n = 0;  // m <= n
};
// Matrices of decoder layer `index` without any split; routed experts first element when MoE.
std::vector<MuonMatrix> muon_matrices(const ModelSpec& model, std::size_t index, bool per_head, bool experts);
Flops newton_schulz_flops(const MuonMatrix& matrix);

Time muon_time(const StepPlan& plan, const Machine& machine, const std::vector<const Chunk*>& chunks,
               std::int64_t dense_shards, std::int64_t expert_shards);

}  // namespace k3sim
