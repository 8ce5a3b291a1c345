// Predictions of published kernel tables and of measurement files, each with the profile of the GPU that was measured.
// Rows that a curve was fitted to are marked, so that fit and prediction are never mixed up.
// Source: product-spec sections 6 and 7.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/kernel_validation.h"

namespace k3sim {

struct PublishedPrediction {
  std::string id, table, gpu;
  KernelPrediction prediction;
  bool calibration = false;  // the curve was fitted to measurements of this GPU
};

std::vector<PublishedPrediction> predict_published(const std::string& file);

}  // namespace k3sim
