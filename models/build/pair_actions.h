// Pairs a forward with the backward that follows it on the same rank, so that one micro-batch's expert communication
// runs beside the other's computation (1F1B with all-to-all overlap). Only pairs of different micro-batches or stages
// are formed; order and dependencies of everything else stay. Source: Megatron-Core combined 1F1B (overlap_moe_expert_
// parallel_comm); DualPipe's overlapped chunk pair.
#pragma once

#include "models/config/scenario.h"
#include "models/schedule/schedule.h"

namespace k3sim {

void pair_forward_backward(Schedule& schedule);
// The scenario runs expert communication of one micro-batch beside the computation of another.
bool overlaps_expert_exchange(const Scenario& scenario);
bool has_pairs(const Schedule& schedule);

}  // namespace k3sim
