// Cuts decoder layers into chunks for parallel.partition: balanced. One cut is judged by
//   mean of the slowest rank (all its chunks, embedding, head and MTP layer included, plus its boundaries' transfers)
//   and of the sum over rounds of their slowest chunks     all ranks work on one round of chunks at a time and wait
//   inside it
//   + a twentieth of the root mean square over ranks   leads the way where several ranks are equally slow
//   all of it x (1 + GiB that states, activations and waiting block rows of all ranks exceed the usable memory, or what
//   they keep on the host their share of it)
// starting from the cut that minimises the slowest chunk, single layers move between chunks while that helps; of the
// two cuts, start and end of this climb, the one with the shorter simulated step is kept. A late boundary of a model
// with AttnRes carries more rows, an early rank holds more micro-batches: both move the cut. The first and the last
// chunk may keep no decoder layer at all beside embedding or head and MTP layer. parallel.partition: blocks cuts at
// multiples of the AttnRes block, so that a boundary never splits one. Source: k3-facts 2.5 (aligned stages of NeMo
// AutoModel); peers (d) 7.
#pragma once

#include <vector>

#include "models/build/step_plan.h"

namespace k3sim {

struct PartitionCost {
  double slowest_rank = 0, slowest_chunk = 0, rounds = 0, missing_gib = 0;  // seconds per micro-batch, GiB
  double value = 0;
};

// Requires: schedule and layers made, chunks not yet cut.
PartitionCost partition_cost(const StepPlan& plan, const Machine& machine, const std::vector<int>& stage_layers);
std::vector<int> balanced_stage_layers(const StepPlan& plan, const Machine& machine);

}  // namespace k3sim
