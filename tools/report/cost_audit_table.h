// Tables of what a step's time rests on: kernel families and collectives with their share and origin, and what each
// kind of collective sends over NVLink and NIC. Work of one GPU, mean over pipeline ranks, all micro-batches of the
// step. Source: models/build/layer_timing.h (timed items), models/cost/cost_model.h (tiers).
#pragma once

#include "models/build/step.h"
#include "tools/report/html_page.h"

namespace k3sim {

PageTable cost_table(const StepPrediction& prediction);     // requires keep_graph
PageTable network_table(const StepPrediction& prediction);  // requires keep_graph

}  // namespace k3sim
