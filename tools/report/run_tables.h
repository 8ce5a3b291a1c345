// The CSV tables of one run: ranks.csv, breakdown.csv, memory.csv, and the dictionary of their columns.
// Source: product-spec section 2.
#pragma once

#include "models/build/step.h"
#include "tools/report/csv.h"

namespace k3sim {

CsvTable ranks_table(const StepPrediction& prediction);      // one row per pipeline rank
CsvTable breakdown_table(const StepPrediction& prediction);  // long form: rank, part, seconds
CsvTable memory_table(const StepPrediction& prediction);     // long form: rank, where, category, bytes

}  // namespace k3sim
