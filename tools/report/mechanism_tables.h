// CSV tables of single mechanisms of a run: memory over time by category, whether offload hides behind compute, how
// much attention every context-parallel rank has. Source: hardware notes 4.2 (overlap inequality); k3-facts 2.7.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"
#include "tools/report/csv.h"

namespace k3sim {

// Requires: prediction made with keep_graph. At most `points` rows per rank; of neighbouring actions the fullest stays.
CsvTable memory_timeline_table(const StepPrediction& prediction, std::size_t points = 400);
CsvTable overlap_table(const StepPrediction& prediction);
CsvTable context_ranks_table(const StepPrediction& prediction);

// The tightest layer of every kind that sends tensors away, with the number of layers of that kind.
std::vector<LayerOverlap> overlap_by_kind(const std::vector<LayerOverlap>& layers);
std::string overlap_lines(const StepPrediction& prediction);

}  // namespace k3sim
