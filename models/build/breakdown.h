// Where the time of every representative rank goes. For each rank
//   step = compute + recompute + vision + exposed communication (tp, cp, ep, pp, dp) + bubble + host + optimizer + wait
// holds exactly: busy time of the compute stream by kind, and every idle gap walked back along the tasks that caused
// it: communication of the own rank counts as exposed, a transfer as pp, work of other ranks as bubble. Definitions
// follow Holistic Trace Analysis (idle attribution). Source: engine-design section 13.
#pragma once

#include <vector>

#include "models/build/step_graph.h"
#include "sim/graph/longest_path.h"

namespace k3sim {

// Why a rank waits for other ranks. Windows as in models/schedule/timeline.h; they sum to RankBreakdown::bubble.
struct BubbleCauses {
  Time warm_up;     // before the rank's first backward
  Time cool_down;   // after its last forward
  Time imbalance;   // in between, would vanish if all stages took the mean time
  Time dependency;  // in between, the rest: the order itself makes the rank wait
};

struct RankBreakdown {
  int rank = 0;
  Time compute, recompute, optimizer;  // compute: useful kernels (forward, backward, weight gradients)
  Time tp, cp, ep, pp, dp, offload;    // exposed communication and copies
  Time bubble;                         // waiting for other pipeline ranks, warm-up and cool-down included
  BubbleCauses why;                    // parts of the bubble; waiting for a transfer is pp
  Time host;                           // launch-bound time
  Time wait;                           // slower peers of the stage, end-of-step synchronisation, framework
  Time vision;                         // vision encoder: forward, rebuild and backward
  Time sum() const {
    return compute + recompute + vision + optimizer + tp + cp + ep + pp + dp + offload + bubble + host + wait;
  }
};

// Why a rank's compute stream stood still for a while; pieces of one gap come latest first.
struct IdlePiece {
  int rank = 0;
  Time from, to;
  Time RankBreakdown::*cause = nullptr;
  TaskId task;  // what ran meanwhile; invalid: nothing of this step
};

// How long one step lasts in a run of many: the makespan, or the longest span of a rank when steps are staggered.
Time step_period(const StepGraph& graph, const TaskTimes& times);

// One row per pipeline rank, the mean over its represented replicas. `idle`, when given, receives every idle piece of
// the first replica (for timelines). What is neither warm-up nor cool-down counts as dependency.
std::vector<RankBreakdown> break_down(const StepGraph& graph, const TaskTimes& times,
                                      std::vector<IdlePiece>* idle = nullptr);
// Splits that rest with the schedule's own timer, in the proportion in which even stages would remove it.
void find_imbalance(const StepPlan& plan, std::vector<RankBreakdown>& ranks);

}  // namespace k3sim
