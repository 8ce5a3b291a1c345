// Generic utilisations of the datasheet tier. Source: hardware notes 1.3, 5.1-5.4 (medians over Hopper and Ampere).
#include "models/cost/roofline.h"

#include <algorithm>

namespace k3sim {

namespace {

// Large-shape utilisation of the matrix units and the work at which half of it is reached (on 132 SMs of 989 TFLOP/s).
struct Utilisation {
  double limit, half_flops;
};

Utilisation utilisation(const Kernel& k) {
  switch (k.family) {
    case KernelFamily::gemm:
      return is_fp8(k.dtype) ? Utilisation{0.60, 8e9} : Utilisation{0.74, 6e9};
    case KernelFamily::grouped_gemm:
      return is_fp8(k.dtype) ? Utilisation{0.50, 2e10} : Utilisation{0.66, 1.5e10};
    case KernelFamily::attention:
      return k.pass == Pass::forward ? Utilisation{0.60, 1e10} : Utilisation{0.48, 1e10};
    case KernelFamily::kda:
    case KernelFamily::kda_prepass:
      return {0.06, 1e9};
    case KernelFamily::newton_schulz:
      return {0.62, 1e10};
    default:
      return {1.0, 0.0};
  }
}

constexpr double kBandwidthUtilisation = 0.85;
constexpr double kKernelLatency = 4e-6;

}  // namespace

KernelTime RooflineCost::time(const Kernel& k) const {
  const double flops = k.flops.value();
  const Utilisation u = utilisation(k);
  const double peak = (is_fp8(k.dtype) ? peaks_.fp8 : peaks_.bf16).value();
  const bool matrix =
      k.family != KernelFamily::memory && k.family != KernelFamily::topk && k.family != KernelFamily::optimizer;
  const double compute = matrix && flops > 0 ? (flops + u.half_flops) / (peak * u.limit) : 0.0;
  const double memory = k.bytes.as_double() / (peaks_.hbm.value() * kBandwidthUtilisation);
  const double launches = std::max(1, k.launches);
  KernelTime t;
  t.time = Time::from_seconds_ceil(kKernelLatency * launches + std::max(compute, memory));
  t.provenance = Provenance::datasheet;
  t.p95_ratio = 1.4;
  return t;
}

}  // namespace k3sim
