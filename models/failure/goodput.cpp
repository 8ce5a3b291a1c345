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
  g.checkpoint_every_s = std::max(g.checkpoint_every_s, rates.checkpoint_write.seconds());
  g.share = g.checkpoint_every_s / (m * std::exp(r / m) * std::expm1((g.checkpoint_every_s + delta) / m));
  return g;
}

double gpu_hours_per_interruption(const FailureCauses& c, int gpus_per_node) {
  CS_CHECK(c.gpu > 0 && c.node > 0 && c.link > 0 && c.software > 0 && gpus_per_node > 0, "failure rates");
  const double per_gpu_hour =
      1.0 / c.gpu + 1.0 / (c.node * gpus_per_node) + c.links_per_gpu / c.link + 1.0 / c.software;
  return 1.0 / per_gpu_hour;
}

Time restart_time(double gpus) {
  const double requeue = std::max(60.0, 454.0 + (768.0 - 454.0) / 3.0 * std::log2(gpus / 2048.0));
  return Time::from_seconds_ceil(60.0 + 120.0 + requeue);
}

CheckpointCost checkpoint_cost(Bytes state, double gpus, Bandwidth storage, Bandwidth host_link, bool asynchronous) {
  const double write = state.as_double() / storage.value();
  const double copy = state.as_double() / gpus / host_link.value();
  if (!asynchronous) return {Time::from_seconds_ceil(std::max(write, copy)), Time()};
  return {Time::from_seconds_ceil(copy), Time::from_seconds_ceil(std::max(write, copy))};
}

double nodes_in_repair(double nodes, double repairs_per_node_hour, double repair_hours) {
  return nodes * repairs_per_node_hour * repair_hours;
}

double share_covered(double mean_out, int spares) {
  // Sums e^-m m^k / k! in logarithms: large means would underflow.
  double sum = 0;
  for (int k = 0; k <= spares; ++k) sum += std::exp(k * std::log(mean_out) - mean_out - std::lgamma(k + 1.0));
  return mean_out <= 0 ? 1.0 : std::min(1.0, sum);
}

int spares_needed(double mean_out, double probability) {
  int spares = 0;
  while (share_covered(mean_out, spares) < probability) ++spares;
  return spares;
}

}  // namespace k3sim
