// Layers of single pipeline ranks, timed anew under a policy of their own; equal ones are made once. Kept alive by
// StepPlan::own_layers. Source: k3-facts 2.4 (policies per stage).
#pragma once

#include <map>
#include <string>

#include "models/build/machine.h"
#include "models/build/step_plan.h"

namespace k3sim {

class OwnLayers {
 public:
  OwnLayers(StepPlan& plan, const Machine& machine);

  // The part's layer (decoder or MTP) under another policy.
  const TimedLayer* make(const ChunkPart& part, const RecomputePolicy& policy);

 private:
  StepPlan& plan_;
  const Machine& machine_;
  CommCoster comm_;
  std::map<std::string, const TimedLayer*> made_;
};

}  // namespace k3sim
