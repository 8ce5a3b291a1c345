// Goodput against the published table: engine-design section 15 and the share reported for Llama 3.
#include "models/failure/goodput.h"

#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("failure causes: Llama 3's four kinds add up to its 419 interruptions in 54 days") {
  CHECK(gpu_hours_per_interruption({}, 8) == doctest::Approx(16384.0 * 54 * 24 / 419).epsilon(0.001));
  FailureCauses frail;
  frail.node /= 10;
  CHECK(gpu_hours_per_interruption(frail, 8) < gpu_hours_per_interruption({}, 8));
}

TEST_CASE("spares: as many as cover the nodes in repair, against summed Poisson terms") {
  CHECK(share_covered(2.0, 1) == doctest::Approx(3.0 * std::exp(-2.0)));
  CHECK(spares_needed(0.01, 0.98) == 0);
  const int n = spares_needed(24.0, 0.99);  // 2,048 nodes, 5.5 days in repair
  CHECK(share_covered(24.0, n) >= 0.99);
  CHECK(share_covered(24.0, n - 1) < 0.99);
}

TEST_CASE("checkpoints: an asynchronous one blocks for the copy and cannot follow faster than storage writes") {
  const CheckpointCost sync = checkpoint_cost(Bytes::gib(4096), 1024, Bandwidth(1e12), Bandwidth(50e9), false);
  const CheckpointCost async = checkpoint_cost(Bytes::gib(4096), 1024, Bandwidth(1e12), Bandwidth(50e9), true);
  CHECK(sync.blocks.seconds() == doctest::Approx(4.398).epsilon(0.001));
  CHECK(async.blocks.seconds() == doctest::Approx(0.0859).epsilon(0.001));
  FailureRates r;
  r.checkpoint_block = async.blocks, r.checkpoint_write = Time::ms(600'000);
  CHECK(daly_goodput(1024, r).checkpoint_every_s == doctest::Approx(600));
}
