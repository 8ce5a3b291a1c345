// What the activation policy does with every tensor that waits for backward, by stage: the treatments that the layers
// of the plan were built with, so that presets, rules by name and the policy `auto` are shown alike. Source:
// k3-facts 2.4; models/memory/storage_rules.h.
#pragma once

#include <vector>

#include "models/build/step.h"
#include "tools/report/csv.h"
#include "tools/report/html_page.h"

namespace k3sim {

// One row per pipeline rank, stage, kind of layer and tensor.
CsvTable activation_table(const StepPrediction& prediction);

// The same with stages that agree on one row, and for policy `auto` what every rank's search found.
std::vector<PageTable> activation_page_tables(const StepPrediction& prediction);

}  // namespace k3sim
