// Refuses measurements that cannot be right or are too few, naming the rows:
//   times that are not positive, quantiles out of order, operations that contradict the shape,
//   rates above what the GPU can do, the same measurement twice with medians that differ by more than 25 %,
//   fewer rows of a curve than its parameters need.
// Source: product-spec section 2 (all problems at once); engine-design section 14 (points 5 and 6).
#pragma once

#include <vector>

#include "calibrate/fit/kernel_rows.h"
#include "models/cost/gpu_profile.h"
#include "sim/base/error.h"

namespace k3sim {

// Two medians of one kernel and shape describe the same thing up to this ratio.
constexpr double kRepeatTolerance = 1.25;

std::vector<Problem> check_measurements(const std::vector<KernelRow>& rows, const GpuLimits& limits,
                                        const std::string& file);

}  // namespace k3sim
