// Everything a step prediction needs besides the scenario: cost of kernels, cost of collectives, limits of the GPU and
// the constants of the software stack. Owned by the caller; the prediction only reads it (thread-safe).
// Source: engine-design sections 4 and 14; product-spec section 3.
#pragma once

#include <memory>
#include <string>

#include "models/build/software_profile.h"
#include "models/comm/collectives.h"
#include "models/cost/cost_model.h"
#include "models/cost/gpu_profile.h"
#include "sim/net/cluster_spec.h"

namespace k3sim {

// The server around the GPUs; memory 0: not stated, nothing is checked.
struct HostLimits {
  Bytes memory{0};
  Bandwidth dram{0};  // of the node, reads plus writes
  int gpus = 8;
  Bandwidth copy_rate{0};  // one GPU alone in one direction, pinned memory
  Time copy_latency{};     // of one copy
};

struct Machine {
  GpuLimits gpu;
  std::shared_ptr<const CostModel> cost;
  CommModel comm;
  SoftwareProfile software;
  HostLimits host = {};
  OverlapSlowdown slowdown = {};
  ClusterSpec cluster = {};  // server and fabric; the number of servers comes from the scenario
  // What-if: what a draw of the routing adds to balanced loads (rows, exchanges, weight pushes), times this.
  double imbalance = 1.0;
};

}  // namespace k3sim
