// A predicted step as a trace: one process per rank, one thread per stream plus one for the schedule's actions, arrows
// from every pipeline send to what waited for it, counters for memory and for the load of NIC and NVLink.
// By default the folded representatives (one per pipeline stage, or all that were simulated); a list of global ranks
// shows each of them with its representative's times. Source: engine-design section 12.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"
#include "sim/trace/trace.h"

namespace k3sim {

struct StepTraceOptions {
  std::vector<int> ranks;  // global ranks; empty: the representatives
  bool kernels = true;     // false: only the actions and the transfers
};

// Requires: prediction made with keep_graph; ranks below the world size.
Trace step_trace(const StepPrediction& prediction, const StepTraceOptions& options);

// About how many slices that trace has; more than kMaxSlices do not fit into a viewer, nor half of them into memory.
double expected_slices(const StepPrediction& prediction, const StepTraceOptions& options);
inline constexpr double kMaxSlices = 1e7;

// "0,8-15,all": global ranks in ascending order; "" and "representatives" give an empty list. Throws UsageError.
std::vector<int> parse_ranks(const std::string& text, int world);

}  // namespace k3sim
