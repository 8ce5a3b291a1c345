// Moves a cost curve from the GPU it was measured on to another one by stated ratios; the result is `borrowed`.
//   rates of matrix units  x compute          (ratio of sustained matrix throughput of the whole GPU)
//   rates of memory        x memory           (ratio of achieved HBM bandwidth)
//   latencies of one SM    / clock            (ratio of clocks; work per SM and serial chains)
// Coefficients are told apart by their prefix: rate_ (matrix), bw_ (memory), sm_ (latency of one SM), others stay.
// Source: Habitat (scaling by bandwidth and by clock x SMs, idea only); hardware notes sections 1.1 and 1.3.
#pragma once

#include <string>

#include "models/cost/gpu_profile.h"

namespace k3sim {

struct TransferRule {
  std::string from;
  double compute = 1, memory = 1, clock = 1;
  double sm_ratio = 1;  // SMs of the new GPU over those of the old one
  std::string note;
};

CostCurve transfer_curve(const CostCurve& curve, const TransferRule& rule);

}  // namespace k3sim
