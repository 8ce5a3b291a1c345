// Source: models/failure/goodput.h.
#include "models/failure/goodput.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {

Goodput daly_goodput(double gpus, const FailureRates& rates) {
  CS_CHECK(gpus > 0 && rates.gpu_hours_per_interruption > 0, "goodput of {} GPUs", gpus);
  const double m = rates.gpu_hours_per_interruption * 3600.0 / gpus;
  const double delta = std::max(1e-6, rates.checkpoint_block.seconds()), r = rates.restart.seconds();
  Goodput g;
  g.hours_between = m / 3600.0;
  g.checkpoint_every_s =
      delta < 2.0 * m
          ? std::sqrt(2.0 * delta * m) * (1.0 + std::sqrt(delta / (2.0 * m)) / 3.0 + delta / (18.0 * m)) - delta
          : m;
  g.share = g.checkpoint_every_s / (m * std::exp(r / m) * std::expm1((g.checkpoint_every_s + delta) / m));
  return g;
}

}  // namespace k3sim
