// The error analysis: shares that can be checked by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "tools/validation/error_features.h"

using namespace k3sim;

namespace {

struct Runs {
  std::vector<Case> cases;
  std::vector<ValidationRow> rows;
  void add(const std::string& group, int tp, double predicted_over_measured) {
    Case c;
    c.id = "c" + std::to_string(cases.size());
    c.group = group;
    c.parallel.tp = tp;
    ValidationRow r;
    r.id = c.id;
    r.kind = "model";
    r.status = "predicted";
    r.precision = "bf16";
    r.measured = 1;
    r.predicted = predicted_over_measured;
    cases.push_back(c);
    rows.push_back(r);
  }
};

double share(const std::vector<FeatureLevel>& levels, const std::string& feature) {
  for (const FeatureLevel& l : levels)
    if (l.feature == feature) return l.share_pct;
  return -1;
}

}  // namespace

TEST_CASE("error features: a feature that separates all errors explains them, one that mixes them explains nothing") {
  Runs r;
  for (int i = 0; i < 8; ++i) r.add(i % 2 == 0 ? "fast" : "slow", i < 4 ? 1 : 8, i % 2 == 0 ? 0.9 : 1.1);
  const auto levels = error_features(r.cases, r.rows, "model");
  CHECK(share(levels, "source") == doctest::Approx(100));
  CHECK(share(levels, "tensor parallelism") == 0);
  CHECK(share(levels, "precision") == -1);  // one level only
  CHECK(levels.front().feature == "source");
  CHECK(levels.front().errors.bias == doctest::Approx(-10));
}

TEST_CASE("error features: half the spread between two levels, by hand") {
  Runs r;  // logs -0.2, 0, 0, 0.2: between 0.04, within 0.04; adjusted 1 - (1/2)(3/2)
  for (const auto& [group, log] : {std::pair{"a", -0.2}, {"a", 0.0}, {"b", 0.0}, {"b", 0.2}})
    r.add(group, 1, std::exp(log));
  CHECK(share(error_features(r.cases, r.rows, "model"), "source") == doctest::Approx(25));
}
