// A few measurements of a kernel family are too few to fit a curve, but enough to say how much slower or faster it is
// here than the base profile says: all rates of the base's curve are divided by the median ratio measured / predicted.
// The form and the fixed times stay. For rows of a training run (fit --from-kineto), which are few shapes by nature.
// Source: engine-design section 14; models/cost/transfer.h (rates and bandwidths by their prefix).
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/kernel_rows.h"
#include "models/cost/gpu_profile.h"

namespace k3sim {

struct ScaledCurve {
  std::string key;
  int rows = 0;
  double ratio = 1;  // measured over predicted by the base, median
  double error = 0;  // median relative error afterwards
};

// Rows of scaled curves get a reason and take no part in the fit. Curves that the base lacks are left alone.
std::vector<ScaledCurve> scale_sparse_curves(GpuProfile& base, std::vector<KernelRow>& rows);

}  // namespace k3sim
