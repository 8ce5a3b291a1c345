// Moves a cost curve from the GPU it was measured on to another one by stated ratios; the result is `borrowed`.
//   rate_*  x compute   ratio of sustained matrix throughput of the whole GPU
//   bw_*    x memory    ratio of achieved memory bandwidth
//   sm_*    / clock     latency of one SM: serial chains and per-tile costs scale with its clock
//   sms     the SM count of the new GPU; all other coefficients stay
// Source: Habitat (scaling by bandwidth and by clock x SMs, idea only); hardware notes sections 1.1 and 1.3.
// Valid within a GPU generation; across generations the result is an estimate only.
#pragma once

#include "models/cost/gpu_profile.h"

namespace k3sim {

CostCurve transfer_curve(const CostCurve& curve, const Borrow& rule, int sm_count);

}  // namespace k3sim
