// A predicted step of one pipeline rank as a trace: every kernel, collective, pipeline transfer, parameter gather,
// gradient reduction and optimizer update of the step graph at its predicted time, host launches included. Source:
// models/build/step_graph.h; engine-design section 13.
#pragma once

#include "tools/import/predicted_trace.h"

namespace k3sim {

PredictedTrace predict_step_trace(const Scenario& scenario, const Machine& machine, int rank);

}  // namespace k3sim
