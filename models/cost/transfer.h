// Cost curves that nobody measured on this GPU, from ones that somebody did; the result is `borrowed`.
// From another GPU, by stated ratios:
//   rate_*    x compute    ratio of sustained matrix throughput of the whole GPU
//   bw_*      x memory     ratio of achieved memory bandwidth
//   sm_*      / clock      latency of one SM: serial chains and per-tile costs scale with its clock
//   throttle  x throttle   fall of the clock under the power limit
//   sms       the SM count of the new GPU; all other coefficients stay
// From a related curve of the same GPU:
//   gemm_fp8_block  gemm_fp8 at 1 / 1.09 of its rate (1195 against 1303 TFLOP/s on H200)
//   grouped_fp8     grouped_bf16 at 1100 / 700 of its rate; fewer bytes come with the kernel
//   gemm_fp32       gemm_bf16 at the ratio of the vector FP32 peak to the BF16 peak, no power limit
// Source: Habitat (scaling by bandwidth and by clock x SMs, idea only); hardware notes 1.1, 1.3, 5.2.
// Valid within a GPU generation; across generations the result is an estimate only.
#pragma once

#include "models/cost/gpu_profile.h"

namespace k3sim {

CostCurve transfer_curve(const CostCurve& curve, const Borrow& rule, int sm_count);

bool is_derived_curve(const std::string& name);
void derive_curves(GpuProfile& profile);

}  // namespace k3sim
