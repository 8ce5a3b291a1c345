// The cost interface: how long does a kernel take on this GPU, and how do we know?
// Implementations never invent: beyond the measured range they hold the utilisation of the boundary; with nothing to
// anchor on they return Provenance::missing and the caller decides (error, or --allow-assumed).
// Source: engine-design section 14; AIConfigurator's provenance tiers (idea only).
#pragma once

#include <cstdint>
#include <string>

#include "models/transformer/kernel.h"
#include "sim/base/units.h"

namespace k3sim {

// From best to worst; a result carries the worst tier that went into it.
enum class Provenance : std::uint8_t {
  measured,   // inside a measured table of this GPU
  fitted,     // curve fitted to measurements of this GPU, inside their range
  boundary,   // held at the edge of the measured range
  borrowed,   // transferred from another GPU or kernel by a stated rule
  datasheet,  // peak rates and a generic utilisation only
  assumed,    // nothing to anchor on; allowed explicitly
  missing
};
const char* to_string(Provenance p);
constexpr Provenance worst(Provenance a, Provenance b) {
  return a > b ? a : b;
}

struct KernelTime {
  Time time;  // GPU execution, including the device-side launch latency, without host cost
  Provenance provenance = Provenance::missing;
  double p95_ratio = 1.0;  // 95th percentile of measured / predicted over held-out shapes of the family
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual KernelTime time(const Kernel& kernel) const = 0;
};

}  // namespace k3sim
