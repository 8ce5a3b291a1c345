// Optional passes over a finished schedule: when activations leave and return, and when the vision encoder runs.
//
// Offload: the activation of (stage, micro-batch) leaves right after its forward and is fetched back `lead` compute
// actions before its backward, unless the backward follows within `keep` compute actions. With `even_ranks`, it goes to
// the mirror rank (first ranks hold most in 1F1B) as in the report's remote offload; else to host memory. Vision: the
// encoder forward of a micro-batch runs `lead` compute actions before the micro-batch enters the first stage, its
// backward right after the first stage's backward (full or input gradient). Source: k3-facts sections 2.2 (streams
// drawn) and 2.4 (offload to CPU or to a later pipeline rank, prefetch).
#pragma once

#include "models/schedule/schedule.h"

namespace k3sim {

struct OffloadOptions {
  int keep = 2;  // compute actions between forward and backward below which the activation stays
  int lead = 1;  // compute actions that the return is ahead of the backward
  bool even_ranks = false;
};

// Requires: compute actions only. Ensures: lint accepts the result, and no backward misses its activation.
Schedule with_offload(const Schedule& schedule, const OffloadOptions& options = {});

Schedule with_vision(const Schedule& schedule, int lead = 1);

}  // namespace k3sim
