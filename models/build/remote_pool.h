// Saved tensors that wait in the memory of another pipeline rank (remote_offload).
//
// In 1F1B the first ranks hold most micro-batches and the last ones few. Rank r of the first half sends to its mirror
// image P - 1 - r, which keeps a registered pool of the sender's peak for the whole step:
//   pool(P - 1 - r) = max over time of the micro-batches of r between forward and backward x their remote bytes
// Ranks of the second half receive, so that what a rule would send from them stays on their own GPU; so does everything
// in bidirectional schedules, whose ranks hold equally much.
// Schedules with offload and onload actions of their own (BPipe) lend whole micro-batches; their pool is added.
// Source: k3-facts 2.4 (remote offload through the Mooncake transfer engine evens out early and late ranks).
#pragma once

#include "models/build/machine.h"
#include "models/build/step_plan.h"

namespace k3sim {

// Which rank keeps this rank's remote tensors; -1: it sends none.
int remote_partner(const Schedule& schedule, int rank);
Bytes remote_peak(const StepPlan& plan, int rank);            // of the rank's own tensors at its partner
Bytes lent_bytes(const StepPlan& plan, int stage);            // that one micro-batch holds between its passes
Bytes lent_peak(const StepPlan& plan, int rank, int keeper);  // by the schedule's own offloads (BPipe)
Bytes partner_pool(const StepPlan& plan, int rank);           // held for the ranks that send to this one

// Replaces the layers of receiving ranks by ones that send nothing to another rank.
void keep_on_receivers(StepPlan& plan, const Machine& machine);

}  // namespace k3sim
