// The prediction as a list of timed GPU work, so that it goes through the same metrics as a measured trace.
//   pair  one forward and one backward chunk of a pipeline stage run together, layer beside layer, in the order that
//         DualPipe publishes; weight gradients after the input gradients of their block
//   step  one pipeline rank's part of the predicted step (predicted_step.h)
// Streams of a pair: 0 compute, 1 communication, 2 side stream; actions are named as in DeepSeek's trace: attn(F),
// mlp(B), ... Source: models/build (timed layer programs); DualPipe (DeepSeek-V3 report section 3.2.1); engine-design
// section 13.
#pragma once

#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/config/scenario.h"
#include "tools/import/trace_metrics.h"

namespace k3sim {

struct PredictedWork {
  TimedWork time;
  std::string name;             // of the item in the layer program
  std::string action;           // "attn(F)"
  std::string schedule_action;  // "PP:2F0" as PyTorch's pipelining names it; empty for a pair
  std::string collective;       // "all_gather x8"; empty: no communication
  Pass pass = Pass::forward;
  TraceFamily plain = TraceFamily::other;  // the family of traces that do not tell weight gradients apart
};

struct PredictedTrace {
  std::vector<PredictedWork> work;
  std::int64_t span_ns = 0;
  int layers = 0;
};

enum class TraceUnit { pair, step };

// Throws ConfigError for impossible layouts. `rank` is a pipeline rank.
PredictedTrace predict_trace(const Scenario& scenario, const Machine& machine, TraceUnit unit, int rank);

}  // namespace k3sim
