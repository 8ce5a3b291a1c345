// Simulation of the balancing methods, O(steps * tokens * experts); one histogram per step collects all micro-batches.
// Source: k3-facts section 2.9. Every draw is keyed by micro-batch, token and expert.
// Valid for scores in (0, 1), which bounds the margins to [b_min - 1, b_max + 1].
#include "models/moe/quantile_balancing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/moe/expert_counts.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"

namespace k3sim {
namespace {

enum Purpose : std::uint64_t { kLasting = 0x71626101, kDrift, kMicroBatchLogit, kTokenLogit };

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

void centre(std::vector<double>& v) {
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  for (double& x : v) x -= mean;
}

class Simulation {
 public:
  explicit Simulation(const BalancingSpec& spec) : spec_(spec), logit_(sz(spec.experts)), bias_(sz(spec.experts), 0.0) {
    CS_CHECK(spec.topk > 0 && spec.topk < spec.experts, "top-{} of {} experts", spec.topk, spec.experts);
    const RandomKey key{spec.seed, kLasting, 0};
    for (std::size_t e = 0; e < logit_.size(); ++e) logit_[e] = spec.lasting_sigma * random_normal(key, e);
  }

  BalancingTrace run() {
    BalancingTrace trace;
    for (int step = 0; step < spec_.steps; ++step) trace.steps.push_back(one_step(step));
    trace.bias = bias_;
    trace.traffic = balancing_traffic(spec_);
    return trace;
  }

 private:
  BalancingStep one_step(int step) {
    const auto [low, high] = std::minmax_element(bias_.begin(), bias_.end());
    BalancingStep result;
    result.bias_spread = *high - *low;
    MarginHistogram margins(spec_.experts, spec_.histogram_bins, *low - 1.0, *high + 1.0);
    std::vector<std::int64_t> load(sz(spec_.experts), 0);
    for (int b = 0; b < spec_.micro_batches; ++b) {
      const std::vector<std::int64_t> part = route(step * spec_.micro_batches + b, margins);
      result.micro_batch_violation += max_violation(part) / spec_.micro_batches;
      for (std::size_t e = 0; e < load.size(); ++e) load[e] += part[e];
    }
    result.global_violation = max_violation(load);
    update(load, margins);
    const RandomKey drift{spec_.seed, kDrift, static_cast<std::uint64_t>(step)};
    for (std::size_t e = 0; e < logit_.size(); ++e) logit_[e] += spec_.drift_sigma * random_normal(drift, e);
    return result;
  }

  std::vector<std::int64_t> route(int batch, MarginHistogram& margins) const {
    const std::size_t n = sz(spec_.experts), k = sz(spec_.topk);
    const RandomKey batch_key{spec_.seed, kMicroBatchLogit, static_cast<std::uint64_t>(batch)};
    const RandomKey token_key{spec_.seed, kTokenLogit, static_cast<std::uint64_t>(batch)};
    std::vector<double> centre_logit(n), score(n), biased(n), sorted(n);
    for (std::size_t e = 0; e < n; ++e) {
      centre_logit[e] = logit_[e] + spec_.micro_batch_sigma * random_normal(batch_key, e);
    }
    std::vector<std::int64_t> load(n, 0);
    std::uint64_t draw = 0;
    for (int t = 0; t < spec_.tokens_per_micro_batch; ++t) {
      for (std::size_t e = 0; e < n; ++e) {
        score[e] = 1.0 / (1.0 + std::exp(-(centre_logit[e] + spec_.token_sigma * random_normal(token_key, draw++))));
        biased[e] = score[e] + bias_[e];
      }
      sorted = biased;
      const auto cut = sorted.begin() + static_cast<std::ptrdiff_t>(k);
      std::nth_element(sorted.begin(), cut, sorted.end(), std::greater<>());
      const double alpha = *cut;  // the (k+1)-th largest
      for (std::size_t e = 0; e < n; ++e) {
        if (biased[e] > alpha) ++load[e];
        if (spec_.method == BalancingMethod::kQuantile) margins.add(static_cast<int>(e), alpha - score[e]);
      }
    }
    return load;
  }

  void update(const std::vector<std::int64_t>& load, const MarginHistogram& margins) {
    const double mean = static_cast<double>(std::accumulate(load.begin(), load.end(), std::int64_t{0})) / spec_.experts;
    if (spec_.method == BalancingMethod::kQuantile) bias_ = quantile_bias(margins, spec_.experts, spec_.topk);
    for (std::size_t e = 0; e < load.size(); ++e) {
      const auto rows = static_cast<double>(load[e]);
      if (spec_.method == BalancingMethod::kFixedStep) {
        bias_[e] += rows < mean ? spec_.fixed_step : rows > mean ? -spec_.fixed_step : 0.0;
      } else if (spec_.method == BalancingMethod::kAuxiliaryLoss) {
        logit_[e] -= spec_.auxiliary_rate * (rows / mean - 1.0);
      }
    }
  }

  BalancingSpec spec_;
  std::vector<double> logit_;
  std::vector<double> bias_;
};

}  // namespace

MarginHistogram::MarginHistogram(int experts, int bins, double low, double high)
    : bins_(bins), low_(low), width_((high - low) / bins), counts_(sz(experts) * sz(bins), 0) {
  CS_CHECK(bins > 0 && high > low, "{} bins over {} ... {}", bins, low, high);
}

void MarginHistogram::add(int expert, double margin) {
  const int bin = std::clamp(static_cast<int>(std::floor((margin - low_) / width_)), 0, bins_ - 1);
  ++counts_[sz(expert) * sz(bins_) + sz(bin)];
}

void MarginHistogram::merge(const MarginHistogram& other) {
  CS_CHECK(other.counts_.size() == counts_.size() && other.low_ == low_ && other.width_ == width_,
           "histograms of {} and {} cells over different ranges", counts_.size(), other.counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

double MarginHistogram::quantile(int expert, double q) const {
  const auto begin = counts_.begin() + static_cast<std::ptrdiff_t>(sz(expert) * sz(bins_));
  const double wanted = q * static_cast<double>(std::accumulate(begin, begin + bins_, std::int64_t{0}));
  double below = 0.0;
  for (int b = 0; b < bins_; ++b) {
    const double here = begin[b];
    if (here > 0.0 && below + here >= wanted) return low_ + width_ * (b + (wanted - below) / here);
    below += here;
  }
  return low_ + width_ * bins_ / 2.0;
}

std::vector<double> quantile_bias(const MarginHistogram& margins, int experts, int topk) {
  std::vector<double> bias(sz(experts));
  const double share = static_cast<double>(topk) / experts;
  for (int e = 0; e < experts; ++e) bias[sz(e)] = margins.quantile(e, share);
  centre(bias);
  return bias;
}

Bytes balancing_traffic(const BalancingSpec& spec) {
  const std::int64_t words = spec.experts;
  switch (spec.method) {
    case BalancingMethod::kQuantile:
      return Bytes(words * spec.histogram_bins * 4);
    case BalancingMethod::kFixedStep:
      return Bytes(words * 4);
    case BalancingMethod::kAuxiliaryLoss:
      return Bytes(words * 4 * spec.micro_batches);  // loads of every micro-batch
    case BalancingMethod::kNone:
      break;
  }
  return Bytes(0);
}

Bytes raw_margin_bytes(int experts, std::int64_t tokens) {
  return Bytes(tokens * experts * 4);
}

BalancingTrace simulate_balancing(const BalancingSpec& spec) {
  return Simulation(spec).run();
}

}  // namespace k3sim
