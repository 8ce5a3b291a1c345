// Router balancing simulated on synthetic scores: Quantile Balancing beside the fixed-step bias and an auxiliary loss.
//   score    s = sigmoid(lasting logit + micro-batch logit + token noise); top-k of s + bias
//   quantile alpha = (k+1)-th largest biased score; r = alpha - s; the next bias of an expert is the k/E quantile of
//   its
//            r (= the negative (1 - k/E) quantile of s - alpha), mean-centred; from a histogram of r over
//            [b_min - 1, b_max + 1] with linear interpolation, summed over micro-batches, one integer all-reduce
//   fixed    bias += step * sign(mean load - load), once per global batch
//   aux loss lasting logit -= rate * (load / mean - 1), gradient descent on the loss with everything else held fixed
// Source: k3-facts section 2.9 (quantile), DeepSeek-V3 report section 2.1.2 (fixed step), Switch Transformer (loss).
// Valid as a statement about load, not about model quality; the score distribution is an assumption.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

enum class BalancingMethod { kNone, kQuantile, kFixedStep, kAuxiliaryLoss };

struct BalancingSpec {
  BalancingMethod method = BalancingMethod::kQuantile;
  int experts = 896;
  int topk = 16;
  int micro_batches = 8;  // per global batch
  int tokens_per_micro_batch = 8192;
  int steps = 10;
  double lasting_sigma = 0.5;      // spread of an expert's logit that stays
  double drift_sigma = 0.0;        // its random walk per step
  double micro_batch_sigma = 0.3;  // fresh per micro-batch: what a bias per global batch cannot remove
  double token_sigma = 1.0;
  int histogram_bins = 1000;
  double fixed_step = 0.001;
  double auxiliary_rate = 0.1;  // learning rate times loss coefficient
  std::uint64_t seed = 1;
};

struct BalancingStep {
  double global_violation = 0.0;       // MaxVio of the global batch
  double micro_batch_violation = 0.0;  // mean MaxVio over its micro-batches
  double bias_spread = 0.0;            // largest minus smallest bias used
};

struct BalancingTrace {
  std::vector<BalancingStep> steps;
  std::vector<double> bias;  // for the step after the last
  Bytes traffic;             // all-reduced per layer and step
};

BalancingTrace simulate_balancing(const BalancingSpec& spec);

// All-reduced bytes per layer and step.
Bytes balancing_traffic(const BalancingSpec& spec);
// What exchanging every r (FP32) of the global batch would take, for `tokens` tokens.
Bytes raw_margin_bytes(int experts, std::int64_t tokens);

// Integer histogram of margins; counts of several micro-batches or ranks add up exactly, in any order.
class MarginHistogram {
 public:
  MarginHistogram(int experts, int bins, double low, double high);
  void add(int expert, double margin);
  void merge(const MarginHistogram& other);  // the all-reduce
  // q quantile of an expert's margins, linear inside the bin; the middle of the range when it has none.
  double quantile(int expert, double q) const;
  const std::vector<std::int32_t>& counts() const { return counts_; }

 private:
  int bins_;
  double low_, width_;
  std::vector<std::int32_t> counts_;  // [expert][bin]
};

// The bias of the next step, mean-centred.
std::vector<double> quantile_bias(const MarginHistogram& margins, int experts, int topk);

}  // namespace k3sim
