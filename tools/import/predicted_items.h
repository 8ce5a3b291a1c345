// One item of a layer program as work in a trace: family, action and collective under the names that traces use.
// Source: DeepSeek-V3 profile data (names of actions); PyTorch's NCCL metadata (names of collectives).
#pragma once

#include <string>

#include "models/build/layer_timing.h"
#include "models/build/placement.h"
#include "tools/import/predicted_trace.h"

namespace k3sim {

// Everything but start and end.
PredictedWork work_of_item(const TimedItem& item, bool backward, const Placement& placement);
std::string collective_name(const std::string& kind, int ranks);  // "all_gather x8"

}  // namespace k3sim
