// The correlation that a known mixture of shared and own errors was made with.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tools/validation/error_correlation.h"

using namespace k3sim;

TEST_CASE("error_correlation: finds the shared part of synthetic errors, wild cases or not") {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal(0.0, 1.0);
  for (const double rho : {0.0, 0.5, 0.9}) {
    std::vector<std::vector<double>> errors;
    for (int g = 0; g < 120; ++g) {
      const double shared = std::sqrt(rho) * normal(generator);
      errors.emplace_back();
      for (int i = 0; i < 6; ++i) errors.back().push_back(shared + std::sqrt(1.0 - rho) * normal(generator));
      if (g % 20 == 0) errors.back().front() += 40.0;  // a failed measurement
    }
    CHECK(error_correlation(errors).rho == doctest::Approx(rho).epsilon(0.12).scale(1.0));
  }
}

TEST_CASE("error_correlation: nothing to compare is no correlation") {
  CHECK(error_correlation(std::vector<std::vector<double>>{{0.1}, {0.3}}).rho == 0.0);
  CHECK(error_correlation(std::vector<std::vector<double>>{}).rho == 0.0);
}
