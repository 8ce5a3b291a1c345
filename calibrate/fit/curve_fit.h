// Fits one cost curve to its rows and validates it by leaving out whole shape families.
//   linear forms        non-negative least squares on relative errors, two reweighting rounds against odd rows
//   all other forms     fit_logarithmic from physical starting values that follow from the datasheet
// Cross-validation: shape families in name order, family i belongs to fold i mod 5; each fold is predicted by a curve
// fitted to the others. Source: engine-design section 14 (points 2, 4 and 5).
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/kernel_rows.h"
#include "models/cost/gpu_profile.h"

namespace k3sim {

struct FamilyErrors {
  int n = 0;
  double median = 0, p90 = 0, worst = 0, bias = 0;  // relative; bias is the median signed error
  double p95_ratio = 1;                             // 95th percentile of measured over predicted, at least 1
};
// `ratios`: predicted over measured.
FamilyErrors summarize_errors(const std::vector<double>& ratios);
double quantile_of(std::vector<double> values, double q);

constexpr int kFolds = 5;

// Fewest rows that this curve can be fitted to; 0 for an unknown key.
int fewest_rows(const std::string& curve);

// Requires: rows usable, all of curve `key`, and as many as fewest_rows.
CostCurve fit_curve(const std::string& key, const std::vector<const KernelRow*>& rows, const GpuLimits& limits);

// Held-out predictions in microseconds, one per row.
std::vector<double> cross_validate(const std::string& key, const std::vector<const KernelRow*>& rows,
                                   const GpuLimits& limits);

}  // namespace k3sim
