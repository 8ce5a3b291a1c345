// Puts weight gradients into the waits of a given order of forwards and input gradients.
//
// The order of F and I is kept; each rank, before its next F or I, knows when the input arrives. It runs pending weight
// gradients while they fit into the wait, when the next forward would exceed the memory, and, once it has idled more
// than `budget` in total, also when they delay the next action. A budget close to the best reachable bubble keeps ranks
// that have slack from delaying the ranks that have none; the caller searches for it. Cost: linear in the number of
// actions. Source: the idea of a bubble budget shared by the ranks is that of the zero-bubble greedy (arXiv
// 2401.10241).
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct FillResult {
  bool feasible = false;  // false: the order needs more activations than the limit allows
  Schedule schedule;
  Time bubble;  // largest idle inside a rank's span
  Time makespan;
};

// Requires: order holds F and I only (no transfers, no pairs); times per stage; limit per rank in (stage, micro-batch)
// pairs.
FillResult fill_weight_grads(const Schedule& order, const std::vector<StageTimes>& times, const std::vector<int>& limit,
                             Time budget);

// Drops W and turns B into I: the order alone.
Schedule without_weight_grads(const Schedule& schedule);

}  // namespace k3sim
