// Balancing methods: histogram quantiles against sorting, predicted MaxVio, traffic. Source: k3-facts section 2.9.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "models/moe/quantile_balancing.h"
#include "sim/base/rng.h"

using namespace k3sim;

namespace {

BalancingSpec small(BalancingMethod method) {
  BalancingSpec spec;
  spec.method = method;
  spec.experts = 32;
  spec.topk = 4;
  spec.micro_batches = 16;
  spec.tokens_per_micro_batch = 256;
  spec.steps = 8;
  return spec;
}

}  // namespace

TEST_CASE("quantile balancing: the histogram quantile is the sorted one to within a bin") {
  MarginHistogram histogram(2, 1000, -1.0, 1.0);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    values.push_back(0.2 * random_normal({3, 1, 4}, i));
    histogram.add(1, values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double q : {16.0 / 896, 0.25, 0.5, 0.9}) {
    CHECK(std::abs(histogram.quantile(1, q) - values[static_cast<std::size_t>(q * 20'000)]) <= 2.0 / 1000);
  }
  CHECK(histogram.quantile(0, 0.5) == doctest::Approx(0.0));
}

TEST_CASE("quantile balancing: adding micro-batches up commutes") {
  MarginHistogram a(1, 10, 0.0, 1.0), b(1, 10, 0.0, 1.0), ab(1, 10, 0.0, 1.0);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const double v = random_uniform({1, 2, 3}, i);
    (i % 3 == 0 ? a : b).add(0, v);
    ab.add(0, v);
  }
  MarginHistogram ba = b;
  ba.merge(a);
  a.merge(b);
  CHECK(a.counts() == ab.counts());
  CHECK(ba.counts() == ab.counts());
}

TEST_CASE("quantile balancing: one step balances the global batch, single micro-batches stay skewed") {
  const BalancingTrace none = simulate_balancing(small(BalancingMethod::kNone));
  const BalancingTrace quantile = simulate_balancing(small(BalancingMethod::kQuantile));
  CHECK(none.steps.back().global_violation > 0.8);
  CHECK(quantile.steps[0].global_violation == none.steps[0].global_violation);  // the bias starts at zero
  CHECK(quantile.steps[1].global_violation < 0.5 * quantile.steps[0].global_violation);
  CHECK(quantile.steps.back().micro_batch_violation > 1.5 * quantile.steps.back().global_violation);
  CHECK(std::accumulate(quantile.bias.begin(), quantile.bias.end(), 0.0) == doctest::Approx(0.0));
  // Without fresh skew in the micro-batches only sampling noise is left.
  BalancingSpec calm = small(BalancingMethod::kQuantile);
  calm.micro_batch_sigma = 0.0;
  CHECK(simulate_balancing(calm).steps.back().global_violation < 0.15);
}

TEST_CASE("quantile balancing: a fixed step needs many steps for the same distance") {
  BalancingSpec spec = small(BalancingMethod::kFixedStep);
  spec.micro_batch_sigma = 0.0;
  const BalancingTrace fixed = simulate_balancing(spec);
  spec.method = BalancingMethod::kQuantile;
  const BalancingTrace quantile = simulate_balancing(spec);
  CHECK(fixed.steps.back().global_violation < fixed.steps.front().global_violation);
  CHECK(fixed.steps.back().global_violation > 3.0 * quantile.steps.back().global_violation);
  CHECK(fixed.steps.back().bias_spread == doctest::Approx(0.001 * 2 * 7).epsilon(0.01));
  spec.method = BalancingMethod::kAuxiliaryLoss;
  spec.auxiliary_rate = 0.3;
  const BalancingTrace loss = simulate_balancing(spec);
  CHECK(loss.steps.back().global_violation < 0.7 * loss.steps.front().global_violation);
}

TEST_CASE("quantile balancing: traffic of K3 is 3.58 MB per layer, 330 MB per step, under 1 % of the raw margins") {
  BalancingSpec spec;
  CHECK(balancing_traffic(spec).as_double() / 1e6 == doctest::Approx(3.58).epsilon(0.002));
  CHECK((balancing_traffic(spec) * 92).as_double() / 1e6 == doctest::Approx(330).epsilon(0.002));
  CHECK(balancing_traffic(spec) / raw_margin_bytes(896, 8192 * 16) < 0.01);
  spec.method = BalancingMethod::kFixedStep;
  CHECK(balancing_traffic(spec) == Bytes(896 * 4));
}
