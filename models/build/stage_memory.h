// Memory of one pipeline rank over the step: states plus the activations of the micro-batches in flight, walked in the
// order of the rank's schedule. Forward adds what the chunk's layers keep; backward frees it layer by layer after a
// transient (workspace, replayed tensors). Offloaded tensors leave two layers' worth of staging on the GPU.
// "Does not fit" is a result: short_by says how many bytes are missing.
// Source: engine-design section 10 (before the allocator emulation); k3-facts 1.5, 2.4.
#pragma once

#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/build/step_plan.h"
#include "models/memory/states.h"

namespace k3sim {

struct RankMemory {
  int rank = 0;
  StateBytes states;
  Bytes activations;        // alive at the peak, kept tensors only
  Bytes transient;          // workspace and replayed tensors at the peak
  Bytes staging;            // offload and dispatcher buffers
  Bytes outside;            // context, communicators, library workspaces
  Bytes host_activations;   // offloaded, at their peak
  Bytes allocated;          // peak by the framework's allocator
  Bytes reserved;           // with fragmentation and what lies outside the allocator
  Bytes short_by;           // 0 when it fits
  std::string peak_action;  // where the peak is, for example "3B17"
};

// Activation bytes around one action of a rank's schedule.
struct MemoryStep {
  Bytes after;   // kept when the action has ended
  Bytes during;  // most at once while it runs, transient tensors included
};

std::vector<MemoryStep> memory_steps(const StepPlan& plan, int rank);  // one entry per action of the rank

std::vector<RankMemory> memory_per_rank(const StepPlan& plan, const Machine& machine);

}  // namespace k3sim
