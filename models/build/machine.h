// Everything a step prediction needs besides the scenario: cost of kernels, cost of collectives, limits of the GPU and
// the constants of the software stack. Owned by the caller; the prediction only reads it (thread-safe).
#pragma once

#include <memory>
#include <string>

#include "models/build/software_profile.h"
#include "models/comm/collectives.h"
#include "models/cost/cost_model.h"

namespace k3sim {

// Datasheet limits of one GPU; from hardware_profiles/gpu/NAME.yaml.
struct GpuLimits {
  std::string name;
  int sm_count = 0;
  FlopRate bf16_dense{0}, fp8_dense{0};
  Bandwidth hbm{0};
  Bandwidth host_link{0};   // per direction, pinned copies
  Bytes usable_memory{0};   // before context
  double price_per_gpu_hour = 0;
};

struct Machine {
  GpuLimits gpu;
  std::shared_ptr<const CostModel> cost;
  CommModel comm;
  SoftwareProfile software;
};

}  // namespace k3sim
