// Intervals around a predicted step time, and whether they cover what they claim: bounds come from the held-out errors
// of four folds of families, coverage is counted on the fifth, so that no run helps to draw the interval that judges
// it. Source: engine-design section 14.5 (grouped folds).
#pragma once

#include <string>
#include <vector>

#include "models/build/step_errors.h"
#include "tools/validation/software_fit.h"

namespace k3sim {

struct IntervalCoverage {
  std::string kind;                                         // dense or moe
  StepErrors bounds;                                        // of all runs of the kind, by held-out families
  double covers80_pct = 0, covers95_pct = 0;                // held-out families
  double source_covers80_pct = 0, source_covers95_pct = 0;  // the same bounds, runs predicted without their source
};

// Relative errors of predicted over measured - 1, as cross_validate returns them; cases of tiers A and B.
std::vector<IntervalCoverage> error_intervals(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases,
                                              const std::vector<double>& by_family,
                                              const std::vector<double>& by_source);

// 10th, 90th, 2.5th and 97.5th percentile of measured over predicted, interpolated.
StepErrors error_bounds(std::vector<double> ratios);

}  // namespace k3sim
