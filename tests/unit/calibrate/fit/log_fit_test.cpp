// The nonlinear fit recovers what made the data, shrugs off odd rows and leaves unseen parameters alone.
#include "calibrate/fit/log_fit.h"

#include <doctest/doctest.h>

using namespace k3sim;

namespace {

const std::vector<double> kWork{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

// fixed + work / rate
std::vector<double> line(const std::vector<double>& p) {
  std::vector<double> t;
  for (const double w : kWork) t.push_back(p[0] + w / p[1]);
  return t;
}

}  // namespace

TEST_CASE("parameters are recovered from exact data") {
  const std::vector<double> x = fit_logarithmic({{5, 0.01}, {1, 0.01}}, line({8, 2.5}), line);
  CHECK(x[0] == doctest::Approx(8).epsilon(0.01));
  CHECK(x[1] == doctest::Approx(2.5).epsilon(0.01));
}

TEST_CASE("one row that is twice too slow does not bend the curve") {
  std::vector<double> measured = line({8, 2.5});
  measured[8] *= 2;
  const std::vector<double> x = fit_logarithmic({{5, 0.01}, {1, 0.01}}, measured, line);
  CHECK(line(x)[8] == doctest::Approx(line({8, 2.5})[8]).epsilon(0.05));
}

TEST_CASE("a parameter that the rows tell nothing about stays where it started") {
  const auto predict = [](const std::vector<double>& p) { return line({p[0], p[1]}); };
  const std::vector<double> x = fit_logarithmic({{5, 0.01}, {1, 0.01}, {7, 0.1}}, line({8, 2.5}), predict);
  CHECK(x[2] == doctest::Approx(7));
}

TEST_CASE("the fit is deterministic") {
  CHECK(fit_logarithmic({{5, 0.1}, {1, 0.1}}, line({8, 2.5}), line) ==
        fit_logarithmic({{5, 0.1}, {1, 0.1}}, line({8, 2.5}), line));
}
