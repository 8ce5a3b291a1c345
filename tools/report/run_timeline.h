// The zoomable views of a run report as JSON: timeline of every pipeline rank, memory over time, kernels of one action.
// Times are integers in units of 100 ns, delta-coded (start since the end of the bar before), to keep a report small.
// Source: engine-design section 18; drawn by tools/report/page/{timeline,kernels,curve}.js.
#pragma once

#include <string>
#include <vector>

#include "tools/report/memory_tables.h"
#include "tools/report/step_view.h"

namespace k3sim {

std::string timeline_json(const StepPrediction& prediction, const std::vector<RankView>& views);
// With `fullest`: its request log under "log" (memory_tables.h).
std::string memory_curves_json(const StepPrediction& prediction, const std::vector<RankView>& views,
                               const MemoryView* fullest = nullptr);
std::string kernels_json(const StepPrediction& prediction, const std::vector<RankView>& views);

}  // namespace k3sim
