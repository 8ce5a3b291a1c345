// Non-negative least squares against hand-made problems and the conditions that any optimum fulfils.
#include "calibrate/fit/nnls.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace k3sim;

namespace {

// Gradient of the squared residual by column, A^T (b - A x).
std::vector<double> pull(const LinearProblem& p, const std::vector<double>& x) {
  std::vector<double> out(x.size(), 0.0);
  for (int i = 0; i < p.rows(); ++i) {
    double r = p.right[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < x.size(); ++j) r -= p.matrix[static_cast<std::size_t>(i) * x.size() + j] * x[j];
    for (std::size_t j = 0; j < x.size(); ++j) out[j] += r * p.matrix[static_cast<std::size_t>(i) * x.size() + j];
  }
  return out;
}

}  // namespace

TEST_CASE("a solution that is positive anyway is the plain least-squares one") {
  const LinearProblem p{.columns = 2, .matrix = {1, 1, 1, 2, 1, 3}, .right = {3, 5, 7}};
  const std::vector<double> x = solve_nnls(p);
  CHECK(x[0] == doctest::Approx(1.0));
  CHECK(x[1] == doctest::Approx(2.0));
}

TEST_CASE("a coefficient that would be negative becomes zero and the other one is refitted") {
  // Unconstrained: intercept -1, slope 2. With a zero intercept the slope is sum xy / sum xx = 25 / 14.
  const LinearProblem p{.columns = 2, .matrix = {1, 1, 1, 2, 1, 3}, .right = {1, 3, 6}};
  const std::vector<double> x = solve_nnls(p);
  CHECK(x[0] == 0.0);
  CHECK(x[1] == doctest::Approx(25.0 / 14.0));
}

TEST_CASE("a negative right side gives zero") {
  const LinearProblem p{.columns = 1, .matrix = {1, 2}, .right = {-1, -2}};
  CHECK(solve_nnls(p)[0] == 0.0);
}

TEST_CASE("random problems fulfil the optimality conditions") {
  std::uint64_t state = 1;
  const auto random = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53 - 0.4;
  };
  for (int trial = 0; trial < 200; ++trial) {
    LinearProblem p;
    p.columns = 1 + trial % 7;
    for (int i = 0; i < 12; ++i) {
      for (int j = 0; j < p.columns; ++j) p.matrix.push_back(random());
      p.right.push_back(random());
    }
    const std::vector<double> x = solve_nnls(p), g = pull(p, x);
    for (std::size_t j = 0; j < x.size(); ++j) {
      CHECK(x[j] >= 0.0);
      if (x[j] > 0.0)
        CHECK(g[j] == doctest::Approx(0.0).epsilon(1e-8));
      else
        CHECK(g[j] <= 1e-8);
    }
  }
}
