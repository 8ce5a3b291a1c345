// Which curve of a profile prices a kernel. A kernel without a curve of its own uses a related one (`substitute`),
// which lowers the provenance to borrowed; without either, the datasheet roofline answers. Source: engine-design
// section 14 (tiers: own shape, cross shape, cross data type, cross operator).
#pragma once

#include <string>

#include "models/cost/gpu_profile.h"
#include "models/transformer/kernel.h"

namespace k3sim {

struct CurveChoice {
  std::string key;          // of GpuProfile::curves; empty: none
  bool substitute = false;  // not the kernel's own curve
};

CurveChoice choose_curve(const Kernel& kernel, const std::string& kda, const std::string& attention);

}  // namespace k3sim
