// Cuts decoder layers into chunks for parallel.partition: balanced. One cut is judged by
//   slowest rank (time of all its chunks, embedding, head and MTP layer included, plus the transfers of its boundaries)
//   + slowest chunk x (chunks per rank - 1) / 2        uneven chunks make ranks wait inside a round
//   + 1 s per GiB that a rank's states and activations exceed the usable memory
// starting from the cut that minimises the slowest chunk, single layers move between neighbours while that helps. A
// late boundary of a model with AttnRes carries more rows, an early rank holds more micro-batches: both move the cut.
// Source: k3-facts 2.5; peers (d) 7.
#pragma once

#include <vector>

#include "models/build/step_plan.h"

namespace k3sim {

struct PartitionCost {
  double slowest_rank = 0, slowest_chunk = 0, missing_gib = 0;  // seconds per micro-batch, GiB
  double value = 0;
};

// Requires: schedule and layers made, chunks not yet cut.
PartitionCost partition_cost(const StepPlan& plan, const Machine& machine, const std::vector<int>& stage_layers);
std::vector<int> balanced_stage_layers(const StepPlan& plan, const Machine& machine);

}  // namespace k3sim
