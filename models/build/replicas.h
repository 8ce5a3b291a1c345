// Which ranks of a pipeline stage are simulated: those with position 0 in every folded dimension.
// Source: engine-design section 7 (symmetry folding).
#pragma once

#include <vector>

#include "models/build/step_plan.h"

namespace k3sim {

// unfold: any of tp, cp, dp, and ep for the members of one expert-parallel group (expert groups lie inside
// tp x cp x dp). Ensures: at least one, ascending.
std::vector<int> represented_replicas(const StepPlan& plan, const std::vector<GroupKind>& unfold);

}  // namespace k3sim
