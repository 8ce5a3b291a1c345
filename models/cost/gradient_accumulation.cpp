// See gradient_accumulation.h. Source: there.
#include "models/cost/gradient_accumulation.h"

namespace k3sim {

double accumulation_us(const Kernel& k, const RooflinePeaks& peaks) {
  if (k.accumulated == 0 || k.pass != Pass::weight_grad || !(peaks.hbm.value() > 0)) return 0;
  constexpr double kLongShare = 0.56, kShortShare = 1.05, kMiddle = 2.5, kGroupedShare = 0.62;
  const bool grouped = k.family == KernelFamily::grouped_gemm;
  const double groups = grouped ? static_cast<double>(k.groups) : 1.0;
  const double peak = (is_fp8(k.dtype) ? peaks.fp8 : peaks.bf16).value(), hbm = peaks.hbm.value();
  const double x = peak > 0 ? 2.0 * static_cast<double>(k.m) / groups / peak * hbm / 8.0 / kMiddle : 0.0;
  const double share = (kLongShare + kShortShare / (1.0 + x * x)) * (grouped ? kGroupedShare : 1.0);
  const double values = static_cast<double>(k.n) * static_cast<double>(k.k) * groups;
  return values * (2.0 * k.accumulated - 2.0) / hbm * share * 1e6;
}

}  // namespace k3sim
