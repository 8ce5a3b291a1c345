// Tables of a run about its experts: load per expert-parallel rank and per expert, replicas, and the summary's `moe`
// part. Source: issue of the MoE model; meanings of columns are in data_dictionary.csv. Valid for predictions with
// experts.
#pragma once

#include <nlohmann/json.hpp>

#include "models/build/step.h"
#include "tools/report/csv.h"

namespace k3sim {

// Keys in models/moe/README.md. Null without expert parallelism.
nlohmann::ordered_json moe_summary(const Scenario& scenario, const StepPrediction& p);

// One row per drawn layer and expert-parallel rank, means over the drawn micro-batches. Empty for balanced routing.
CsvTable expert_ranks_table(const StepPrediction& p);
// One row per drawn layer and expert.
CsvTable expert_load_table(const StepPrediction& p, int ep);

}  // namespace k3sim
