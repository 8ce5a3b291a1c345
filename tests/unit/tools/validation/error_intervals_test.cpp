// Bounds and coverage of prediction intervals on errors whose distribution is known.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tools/validation/error_intervals.h"

using namespace k3sim;

TEST_CASE("error bounds: percentiles of measured over predicted, interpolated") {
  std::vector<double> ratios;
  for (int i = 0; i <= 100; ++i) ratios.push_back(1.0 + 0.01 * ((i * 37) % 101));  // 1.00 ... 2.00 in another order
  const StepErrors e = error_bounds(ratios);
  CHECK(e.low80 == doctest::Approx(1.1));
  CHECK(e.high80 == doctest::Approx(1.9));
  CHECK(e.low95 == doctest::Approx(1.025));
  CHECK(e.high95 == doctest::Approx(1.975));
  CHECK(e.runs == 101);
}

TEST_CASE("intervals cover what they claim when folds are alike, and show it when sources are not") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0.0, 0.1);
  std::vector<Case> cases(2000);
  std::vector<CaseSurrogate> all(cases.size());
  std::vector<double> by_family, by_source;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    all[i].row = i;
    all[i].family = "family " + std::to_string(i / 4);
    cases[i].model.experts = i % 2;
    cases[i].tier = i % 10 == 0 ? "C" : "A";  // tier C is left out
    by_family.push_back(std::exp(normal(random)) - 1);
    by_source.push_back(std::exp(3 * normal(random)) - 1);
  }
  const std::vector<IntervalCoverage> found = error_intervals(all, cases, by_family, by_source);
  REQUIRE(found.size() == 2);
  CHECK(found[0].bounds.runs + found[1].bounds.runs == 1800);
  for (const IntervalCoverage& i : found) {
    CHECK(std::fabs(i.covers80_pct - 80) < 4);
    CHECK(std::fabs(i.covers95_pct - 95) < 2.5);
    CHECK(i.bounds.high80 == doctest::Approx(std::exp(0.1 * 1.2816)).epsilon(0.03));
    // Three times the spread: the central 80 % of the narrow distribution hold 33 % of the wide one.
    CHECK(i.source_covers80_pct == doctest::Approx(33).epsilon(0.15));
  }
}
