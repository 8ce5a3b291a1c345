// Predicted kernel times beside measured ones: per row, and per family median, 90th percentile, worst and bias.
// Source: product-spec sections 2 and 7 (kernels command); issue "Calibration".
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/curve_fit.h"
#include "calibrate/fit/kernel_rows.h"
#include "models/cost/gpu_profile.h"

namespace k3sim {

struct KernelPrediction {
  std::string family, kernel, pass, dtype, params;
  double measured_us = 0;   // 0: not measured
  double predicted_us = 0;  // 0: not predicted, see reason
  Provenance provenance = Provenance::missing;
  std::string reason;
  double error() const { return predicted_us / measured_us - 1.0; }
  bool compared() const { return measured_us > 0 && predicted_us > 0; }
};

struct FamilySummary {
  std::string family;
  FamilyErrors errors;
};

// One prediction per row, with the profile's own curve for the row's kernel, else its general cost model.
std::vector<KernelPrediction> predict_rows(const GpuProfile& profile, const std::vector<KernelRow>& rows);

// The same rows, each predicted by curves fitted without its shape family. Throws ConfigError for unusable data.
std::vector<KernelPrediction> predict_held_out(const GpuProfile& profile, const std::vector<KernelRow>& rows,
                                               const std::string& file);

// Kernels of one K3 layer at 8192 tokens, predicted only.
std::vector<KernelPrediction> predict_usual_kernels(const GpuProfile& profile);

// In order of first appearance; families without a compared row are left out.
std::vector<FamilySummary> summarize_families(const std::vector<KernelPrediction>& predictions);

}  // namespace k3sim
