// What errors of two layouts of one model on one cluster have in common: the part that drops out of their difference.
//   rho = 1 - (median |ei - ej| within groups / median |ei - ej| over all pairs)^2,  e = ln(predicted / measured)
// For normal errors this is the intra-class correlation; medians keep single wild cases from deciding. Groups: layouts
// of one source, model, GPU type and count, batch, sequence and precision, as in plan_choice.h.
// Source: variance of a difference, 2 (1 - rho) sigma^2; robust scale by median pairwise differences (Rousseeuw and
// Croux 1993).
#pragma once

#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

struct ErrorCorrelation {
  double rho = 0;
  int groups = 0, layouts = 0;  // of at least two
};
ErrorCorrelation error_correlation(const std::vector<std::vector<double>>& errors);
ErrorCorrelation error_correlation(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows);

}  // namespace k3sim
