// Puts the vision encoder's passes into a pipeline schedule: VF and VB actions on the ranks that run them.
//
//   stage0     every micro-batch right before and after the first stage's own passes, on its rank
//   decoupled  (K2.5) every rank encodes its share of the whole batch up front and keeps outputs only; after the last
//              backward of the language model it rebuilds and runs the encoder's backward
//   bubbles    (K3) one micro-batch per rank before the pipeline starts; every other one in a gap of some rank before
//              its micro-batch enters the first stage, earliest gap first (the warm-up bubble of late ranks is the
//              surest); what finds no gap is shared by all ranks before the pipeline starts. Backward mirrors it: gaps
//              after the first stage's backward, latest first, and the last P micro-batches one per rank at the end.
// Gaps are those of the schedule alone (place_actions); the step graph then tells what the encoder really costs.
// Source: k3-facts 2.8 (TR 5.2.3; K2.5 report).
#pragma once

#include <string>
#include <vector>

#include "models/build/vision_load.h"
#include "models/schedule/timeline.h"

namespace k3sim {

// Requires: one chain, one slice per micro-batch; loads of all micro-batches.
Schedule place_vision(const Schedule& schedule, const std::string& placement, const std::vector<VisionLoad>& loads,
                      const ScheduleCosts& costs);

// Stage times of the plan's layers, for the placement of gaps.
ScheduleCosts stage_costs(const StepPlan& plan);

}  // namespace k3sim
