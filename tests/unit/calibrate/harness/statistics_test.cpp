// Repeat until stable: when it stops and what it reports.
#include "calibrate/harness/progress.h"
#include "calibrate/harness/repeat_until_stable.h"

#include <doctest/doctest.h>

#include "sim/base/rng.h"

using namespace k3sim;

TEST_CASE("quantile interpolates between order statistics") {
  CHECK(quantile({4, 1, 3, 2}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({4, 1, 3, 2}, 0.0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 1.0) == 4);
}

TEST_CASE("repeat until stable: constant samples stop at the minimum number") {
  RepeatUntilStable r({});
  int n = 0;
  while (!r.finished()) r.add(10), ++n;
  CHECK(n == StopRule{}.min_reps);
  CHECK(r.summary().median_us == 10);
  CHECK(r.summary().rel_interval == 0);
}

TEST_CASE("repeat until stable: noisier samples take more repeats, and the interval is as narrow as promised") {
  const auto repeats = [](double noise) {
    RepeatUntilStable r({.max_reps = 100000, .max_total_us = 1e12});
    const RandomKey key{7, 1, 0};
    for (std::uint64_t i = 0; !r.finished(); ++i) r.add(100 * (1 + noise * random_normal(key, i)));
    CHECK(r.summary().rel_interval < 0.02);
    CHECK(r.summary().median_us == doctest::Approx(100).epsilon(0.02));
    return r.summary().reps;
  };
  CHECK(repeats(0.20) > repeats(0.05));
}

TEST_CASE("repeat until stable: one slow outlier changes neither the median nor the number of repeats") {
  RepeatUntilStable r({});
  r.add(5000);
  while (!r.finished()) r.add(10);
  CHECK(r.summary().reps == StopRule{}.min_reps);
  CHECK(r.summary().median_us == 10);
}

TEST_CASE("repeat until stable: a very long kernel stops after the time budget but never below the floor") {
  RepeatUntilStable r({.max_total_us = 1000, .floor_reps = 5});
  int n = 0;
  while (!r.finished()) r.add(900), ++n;
  CHECK(n == 5);
}

TEST_CASE("progress bar is empty at the start and full at the end") {
  CHECK(Progress::bar(0, 4, 8) == "[........]");
  CHECK(Progress::bar(2, 4, 8) == "[####....]");
  CHECK(Progress::bar(9, 4, 8) == "[########]");
}
