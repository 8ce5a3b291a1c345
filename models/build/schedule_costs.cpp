// See schedule_costs.h. Source: engine-design section 11.
#include "models/build/schedule_costs.h"

#include <algorithm>

#include "models/build/attnres_flow.h"

namespace k3sim {

namespace {

bool runs_full_backwards(const Schedule& s) {
  for (const std::vector<Action>& row : s.actions)
    for (const Action& a : row)
      if (a.kind == ActionKind::kBackward || a.second_kind == ActionKind::kBackward) return true;
  return false;
}

}  // namespace

ScheduleCosts schedule_costs(const StepPlan& plan) {
  const Schedule& s = plan.schedule;
  const StageBoundaries boundaries = stage_boundaries(plan);
  const bool full = runs_full_backwards(s);
  ScheduleCosts costs;
  for (int stage = 0; stage < s.stages; ++stage) {
    StageTimes t{.forward = Time(), .input_grad = Time(), .weight_grad = Time(), .transfer = Time()};
    for (const ChunkPart& part : plan.chunks[static_cast<std::size_t>(s.model_stage(stage))].steps()) {
      const TimedLayer& layer = *part.timed;
      t.forward += layer.forward.summary.elapsed;
      t.weight_grad += layer.weight_grad.summary.elapsed;
      t.input_grad +=
          full ? layer.backward.summary.elapsed - layer.weight_grad.summary.elapsed : layer.input_grad.summary.elapsed;
    }
    t.input_grad = std::max(t.input_grad, Time());
    if (!s.is_last(stage))
      t.transfer = plan.comm->pipeline_hop(boundaries.payload[static_cast<std::size_t>(stage)]).time;
    costs.stages.push_back(t);
  }
  return costs;
}

}  // namespace k3sim
