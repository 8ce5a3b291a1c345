// See device_classes.h. Source: hardware notes 3.6.
#include "models/build/device_classes.h"

#include <algorithm>

namespace k3sim {

ResourceClass device_class(KernelFamily family) {
  switch (family) {
    case KernelFamily::gemm:
    case KernelFamily::grouped_gemm:
    case KernelFamily::attention:
    case KernelFamily::kda:
    case KernelFamily::kda_prepass:
    case KernelFamily::newton_schulz:
      return kMatrixKernels;
    default:
      return kMemoryKernels;
  }
}

ResourceClass device_class(const Traffic& t) {
  switch (t.kind) {
    case TrafficKind::collective:
      return t.collective == Collective::all_to_all ? kExchanges : kCollectives;
    case TrafficKind::two_hop:
      return kExchanges;
    case TrafficKind::to_host:
    case TrafficKind::from_host:
      return kHostCopies;
    default:
      return kExclusive;
  }
}

SlowdownMatrix device_slowdown(const OverlapSlowdown& measured, double set_aside) {
  SlowdownMatrix m = no_slowdown();
  const double exchange = std::max(1.0, measured.compute_beside_all_to_all / set_aside);
  m[kMatrixKernels][kCollectives] = std::max(1.0, measured.compute_beside_all_reduce);
  m[kMatrixKernels][kExchanges] = exchange;
  m[kMatrixKernels][kHostCopies] = m[kMemoryKernels][kHostCopies] = std::max(1.0, measured.compute_beside_host_copy);
  m[kMemoryKernels][kCollectives] = std::max(1.0, measured.memory_beside_comm);
  m[kMemoryKernels][kExchanges] = std::max(1.0, measured.memory_beside_comm / set_aside);
  return m;
}

}  // namespace k3sim
