// Goodput against the published table: engine-design section 15 and the share reported for Llama 3.
#include "models/failure/goodput.h"

#include <doctest/doctest.h>

using namespace k3sim;

namespace {

double percent(double gpus, std::int64_t delta_s, std::int64_t restart_min) {
  FailureRates r;
  r.checkpoint_block = Time::ms(delta_s * 1000);
  r.restart = Time::ms(restart_min * 60'000);
  return 100.0 * daly_goodput(gpus, r).share;
}

}  // namespace

TEST_CASE("daly_goodput: the table for 50,700 GPU-hours per interruption") {
  CHECK(percent(1024, 30, 10) == doctest::Approx(97.8).epsilon(0.001));
  CHECK(percent(4096, 5, 10) == doctest::Approx(97.2).epsilon(0.001));
  CHECK(percent(16384, 30, 10) == doctest::Approx(88.0).epsilon(0.001));
  CHECK(percent(16384, 5, 3) == doctest::Approx(95.5).epsilon(0.001));
  CHECK(percent(102400, 5, 10) == doctest::Approx(66).epsilon(0.01));
}

TEST_CASE("daly_goodput: Llama 3 had more than 90 % effective time and an interruption every 3.1 hours") {
  const Goodput g = daly_goodput(16384);
  CHECK(g.share > 0.90);
  CHECK(g.hours_between == doctest::Approx(3.1).epsilon(0.01));
  CHECK(g.checkpoint_every_s / 60.0 == doctest::Approx(5.5).epsilon(0.02));
}

TEST_CASE("daly_goodput: more GPUs, longer checkpoints and slower restarts never help") {
  double before = 1;
  for (double gpus = 8; gpus < 1e6; gpus *= 2) {
    const double now = daly_goodput(gpus).share;
    CHECK(now < before);
    CHECK(now > 0);
    before = now;
  }
  CHECK(percent(4096, 30, 10) < percent(4096, 5, 10));
  CHECK(percent(4096, 5, 10) < percent(4096, 5, 3));
}
