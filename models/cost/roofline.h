// Datasheet tier: roofline with generic utilisations, for GPUs that nobody has calibrated.
//   t = t0 + max(F / (P u(F)), B / (W v)),  u(F) = u_inf F / (F + F_half)
// Utilisations are those that Hopper and Ampere measurements agree on (hardware notes 1.3, 5): large BF16 GEMM 0.74 of
// peak, FP8 0.60, attention 0.60 forward, KDA 0.06, memory-bound kernels 0.85 of HBM. Provenance is always datasheet.
// Source: hardware notes sections 1.3, 5.1-5.4; engine-design section 14.
#pragma once

#include "models/cost/cost_model.h"

namespace k3sim {

struct RooflinePeaks {
  FlopRate bf16{0}, fp8{0};
  Bandwidth hbm{0};
};

class RooflineCost final : public CostModel {
 public:
  explicit RooflineCost(const RooflinePeaks& peaks) : peaks_(peaks) {}
  KernelTime time(const Kernel& kernel) const override;

 private:
  RooflinePeaks peaks_;
};

}  // namespace k3sim
