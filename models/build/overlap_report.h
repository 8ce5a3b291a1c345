// Does offload hide behind compute? For every layer of the plan that sends tensors away:
//   out: bytes / rate <= forward of the layer     in: bytes / rate <= its backward
// Source: hardware notes 4.2; k3-facts 2.4 (0.82 GB in 16 ms against 38 ms of forward for a KDA+MoE layer).
#pragma once

#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/build/step_plan.h"

namespace k3sim {

struct LayerOverlap {
  std::string kind;  // "kda+moe"
  int layers = 0;    // of the model with the same times
  Bytes host, remote;
  Time copy, forward, backward;
  bool hides_out() const { return copy <= forward; }
  bool hides_in() const { return copy <= backward; }
};

std::vector<LayerOverlap> overlap_report(const StepPlan& plan, const Machine& machine);
std::string layer_kind_name(const LayerSpec& layer);

}  // namespace k3sim
