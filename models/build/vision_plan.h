// What the vision encoder asks of a step: times per micro-batch, parameters and bytes. Made by vision_load.h.
// Source: k3-facts 2.8.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

struct VisionLoad {  // one micro-batch on the busiest rank of its group
  Time forward, backward;
  std::int64_t rows = 0;     // patches
  std::int64_t at_once = 0;  // of which in one piece
  double imbalance = 1;      // busiest rank over the mean
};

struct VisionPlan {
  std::vector<VisionLoad> microbatches;  // empty: text only
  std::int64_t parameters = 0;
  Bytes embeddings;   // of one micro-batch on one rank, mean: what goes to the first stage
  Bytes activations;  // per row, rebuilt before backward
  double mean_patches = 0, mean_imbalance = 1;
  bool present() const { return !microbatches.empty(); }
};

}  // namespace k3sim
