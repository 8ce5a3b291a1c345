// What routing does to the expert-parallel ranks of a step and what the dispatcher makes of it: rows per rank as they
// arrive, rows that the ranks compute, replicas of experts that they receive; the step's own draws of its first layers
// with experts and micro-batches.
// Source: k3-facts 3.3 to 3.7; engine-design section 18. Rows and replicas do not depend on link rates.
#pragma once

#include <optional>
#include <vector>

#include "models/build/step.h"
#include "tools/report/html_page.h"

namespace k3sim {

struct ExpertLoadDraw {
  int layer = 0, microbatch = 0;
  double violation = 0;          // most loaded expert over the mean, minus one
  std::vector<double> arriving;  // by rank: tokens of its own experts over the mean
  std::vector<double> computed;  // by rank: padded rows over those of balanced routing
  std::vector<double> replicas;  // by rank: experts received
};

// Empty where routing is balanced.
std::vector<ExpertLoadDraw> expert_load(const MoeEffects& effects);

struct ExpertLoadSection {
  std::vector<PageHeat> grids;
  PageTable table;
};
std::optional<ExpertLoadSection> expert_load_section(const StepPrediction& prediction);

}  // namespace k3sim
