// Activation policy `auto`: every pipeline rank gets the treatments that fit its own memory at the least added time.
// The search works on sums (policy_search.h); the memory walk then checks every rank, and a rank that is still short
// gets a tighter limit. Source: k3-facts 2.4; requirement: every stage is its own.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "models/build/policy_search.h"
#include "models/build/step_plan.h"

namespace k3sim {

std::vector<NamedPreset> activation_presets(const ModelSpec& model);

// What one rank's search sees. Requires: chunks cut without a policy.
PolicyProblem policy_problem(const StepPlan& plan, const Machine& machine, int rank);

// Replaces the layers of every rank by those of its choice; plan.choices tells what was chosen.
void choose_stage_policies(StepPlan& plan, const Machine& machine);

}  // namespace k3sim
