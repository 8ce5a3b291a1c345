// Achieved rates and fixed costs that the dispatchers need, per GPU and direction. All are parameters of a hardware
// profile; dispatch_rates(gpu) gives the fitted sets.
// Source: see dispatch_rates.cpp. Valid for large messages; fixed costs cover kernel launch and barriers.
#pragma once

#include <string_view>

#include "sim/base/units.h"

namespace k3sim {

struct DispatchRates {
  Bandwidth nvlink;          // bulk row copies to other ranks of the domain
  Bandwidth nvlink_kernel;   // ceiling of DeepEP's kernels, rows that stay on the rank counted too
  Bandwidth kernel_per_sm;   // what one SM of a DeepEP kernel moves within a domain
  Bandwidth forward_per_sm;  // the same for the RDMA-to-NVLink forwarding of DeepEP v1
  Bandwidth forward_per_sm_v2;
  Bandwidth nccl_all_to_all;  // marginal bus bandwidth within a domain
  Bandwidth rdma;             // payload per NIC, one NIC per GPU
  Bandwidth hbm;              // row copies, reads plus writes
  Time moonep_dispatch_fixed, moonep_combine_fixed;
  Time deepep_dispatch_fixed, deepep_combine_fixed;
  Time nccl_fixed;
  Time notify;  // exchange of counts before a dispatch with data-dependent shapes
  Time planner_fixed;
  Time planner_per_entry;  // per (token, k) entry of a rank
  Time replicate_fixed;
  Time local_fixed;  // one local copy kernel
};

// h100_sxm, h200_sxm, h20, h800_sxm, gb200. Throws ConfigError for other names.
DispatchRates dispatch_rates(std::string_view gpu);

}  // namespace k3sim
