// Fewest nodes against sequence length and micro-batch, per GPU type, with the term that binds.
// Source: peers.md (d) 5.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/fit.h"

namespace k3sim {

struct FrontierPoint {
  std::string gpu;
  std::int64_t sequence = 0, micro_batch = 0;
  int nodes = 0;  // 0: nothing fits
  std::string layout, binding;
};

// Sequence lengths of 1, 4 and 16 times the space's, micro-batches of 1 and 2.
std::vector<FrontierPoint> fit_frontier(const SearchSpace& space, MachineStore& machines, const FitOptions& options);
// Picture: nodes against sequence length, both logarithmic; a line per GPU type and micro-batch, a mark per point in
// the colour of the term that binds.
std::string fit_frontier_svg(const std::vector<FrontierPoint>& points);
CsvTable fit_frontier_table(const std::vector<FrontierPoint>& points);

}  // namespace k3sim
