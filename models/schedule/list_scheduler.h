// List scheduling of a pipeline: a small clock walks through time, and every rank that is free picks the best action
// whose input is there, under a limit on activations. The order that comes out is the schedule.
//
// A free rank picks backwards or forwards as the policy prefers (forwards only if they fit the memory; among its chunks
// the later one first), then weight gradients. A weight gradient may start
// only if it ends no later than `patience` of its own time after the next known arrival; else the rank waits for that.
// Memory cannot lock up: a forward of chunk c is admitted only if one place is left for each later chunk of the rank,
// so the oldest micro-batch can always run to its end. Cost: O(actions * log ranks). Source: the greedy schedulers of
// arXiv 2401.10241 and 2405.15362 (the idea of filling gaps with weight gradients and of trying several rules); the
// event-driven form is ours.
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

enum class Prefer { kBackward, kForward };

struct ListPolicy {
  double patience = 0.5;  // share of a weight gradient that may delay the next forward or backward
  Prefer prefer = Prefer::kBackward;
};

struct ListInput {
  Schedule skeleton;              // placement only; actions are overwritten
  std::vector<StageTimes> times;  // one per stage
  std::vector<int> limit;         // activations per rank, in (stage, micro-batch) pairs
};

struct ListResult {
  Schedule schedule;
  Time span;  // largest (end - start) over ranks: what the zero-bubble papers minimise
  Time makespan;
};

ListResult list_schedule(const ListInput& input, const ListPolicy& policy);

}  // namespace k3sim
