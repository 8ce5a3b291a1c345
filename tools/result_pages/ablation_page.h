// The report of `ablate`: what every mechanism buys in time, MFU and memory, singly and cumulatively, and on request
// what 10 % on each input does. Source: product-spec section 2; issue "What-if".
#pragma once

#include <string>
#include <vector>

#include "models/config/scenario.h"
#include "tools/planner/ablation.h"
#include "tools/planner/sensitivity.h"
#include "tools/report/html_page.h"

namespace k3sim {

HtmlPage ablation_page(const Scenario& scenario, const Ablation& ablation, const std::vector<Sensitivity>& inputs,
                       const std::string& command);

// Bars of what 10 % on each input does to the step; requires: not empty.
PageDeltas sensitivity_deltas(const std::vector<Sensitivity>& inputs);

}  // namespace k3sim
