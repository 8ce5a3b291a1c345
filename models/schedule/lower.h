// Lowering: from compute actions to the complete list that a runtime executes.
//   unshard / reshard : the next `lookahead` stages that will compute are gathered, others freed to make room
//   reduce-grad       : right after the stage's last weight gradient
//   send / receive    : ranks take turns; whoever sends also appends the matching receive to the receiver's list, which
//                       fixes an order that cannot deadlock; no transfer between stages on one rank
// Overlapped pairs count as both of their parts. Idle cells are dropped.
// Source: torch/distributed/pipelining/schedules.py at 00722e6 (_add_unshard_reshard, _add_reduce_grad,
// _add_send_recv).
#pragma once

#include "models/schedule/schedule.h"

namespace k3sim {

struct LowerOptions {
  bool unshard = true;
  bool reduce_grad = true;
  bool transfers = true;
  int lookahead = 3;
};

// Requires: compute actions and idle cells only. Throws ConfigError if the order deadlocks (no transfers can be
// placed).
Schedule lower_schedule(const Schedule& compute, const LowerOptions& options = {});

// The compute actions alone: undoes lowering, and drops idle cells.
Schedule compute_only(const Schedule& schedule);

}  // namespace k3sim
