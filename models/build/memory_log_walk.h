// Walks one pipeline rank's schedule in host issue order and reports every buffer to a MemorySink: states, pipeline
// buffers, per layer the events of its pass, gathered parameters and unsharded gradients of FSDP, optimizer step.
//
//   start     weights, gradient buffers, FP32 master copies, the pool for another rank's tensors (remote_pool.h); Adam
//             or Muon moments appear in the first optimizer step
//   forward   receive buffer, layers, output (freed when sent, as Megatron does); offloaded tensors leave one layer
//   late backward  received gradient, layers in reverse, tensors from host memory one layer ahead zero 3    a layer's
//   parameters are gathered one layer ahead and dropped after it; its unsharded gradient waits for the
//             reduce-scatter, whose input lives until the next layer's; embedding and head are one root group that
//             stays
//   step      FP32 copies of the gradients where the stack makes them
// Source: Megatron-LM core/pipeline_parallel/schedules.py, core/distributed; PyTorch FSDP2 (_fsdp_param_group.py).
#pragma once

#include "models/build/memory_log_sink.h"
#include "models/build/software_profile.h"
#include "models/build/step_plan.h"

namespace k3sim {

struct MemoryWalkOptions {
  int steps = 1;             // optimizer steps; the first one lacks the moments
  int microbatch_limit = 0;  // > 0: later micro-batches are left out (they repeat the same pattern)
};

void walk_memory(const StepPlan& plan, const SoftwareProfile& software, int rank, const MemoryWalkOptions& options,
                 MemorySink& sink);

}  // namespace k3sim
