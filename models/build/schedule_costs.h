// Durations of a plan's stages for the schedule's own timer (models/schedule/timeline.h): what `schedule show` draws to
// scale, and what tells how much of a steady bubble even stages would remove.
// Per stage: F, I and W are the sums over its layers of the time that each pass takes alone, exposed communication
// included; I = B - W where the schedule runs full backwards. Transfer: one hop of what the boundary behind the stage
// carries. An overlapped pair counts as its parts. Source: engine-design section 11; issue 5 (idle attribution).
#pragma once

#include "models/build/step_plan.h"
#include "models/schedule/timeline.h"

namespace k3sim {

ScheduleCosts schedule_costs(const StepPlan& plan);

}  // namespace k3sim
