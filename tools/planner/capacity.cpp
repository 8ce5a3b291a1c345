#include "tools/planner/capacity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/transformer/layers.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

// Useful tokens per second and working GPU on a cluster of that many GPUs.
double rate(const StepSummary& step, const CapacityQuestion& q, double gpus) {
  return step.tokens_per_s_per_gpu * (1.0 - q.straggler_share) * daly_goodput(gpus, q.failures).share;
}

double days_on(const StepSummary& step, const CapacityQuestion& q, double gpus) {
  return q.tokens / (rate(step, q, gpus) * gpus) / 86'400.0;
}

double price_of(const Scenario& s, const Machine& m, const CapacityQuestion& q) {
  if (q.price_per_gpu_hour > 0) return q.price_per_gpu_hour;
  return s.cluster.price_per_gpu_hour > 0 ? s.cluster.price_per_gpu_hour : m.gpu.price_per_gpu_hour;
}

// Fewest GPUs, in whole nodes, that end in time. More GPUs always help until failures eat the gain; then none does.
double gpus_for_days(const StepSummary& step, const CapacityQuestion& q, int node) {
  double best_days = std::numeric_limits<double>::infinity();
  for (double nodes = 1; nodes <= 131'072; nodes = std::max(nodes + 1, std::floor(nodes * 1.002))) {
    const double days = days_on(step, q, nodes * node);
    best_days = std::min(best_days, days);
    if (days <= *q.days) return nodes * node;
  }
  throw ConfigError("no number of GPUs ends in time: failures eat what more GPUs gain", "--days");
}

// Most GPUs that the budget pays: cost per token only rises with the number of GPUs, so the budget must cover one node.
double gpus_for_budget(const StepSummary& step, const CapacityQuestion& q, int node, double price) {
  const auto cost = [&](double gpus) { return days_on(step, q, gpus) * 24.0 * gpus * (1.0 + q.spare_share) * price; };
  if (price <= 0) throw ConfigError("needs a price per GPU hour", "--price");
  if (cost(node) > *q.budget) throw ConfigError("not even one node's slow run is paid for by this budget", "--budget");
  double nodes = 1;
  while (nodes < 131'072 && cost((nodes + 1) * node) <= *q.budget)
    nodes = std::max(nodes + 1, std::floor(nodes * 1.002));
  return nodes * node;
}

int gpus_that_hold(double bytes, const Machine& machine) {
  return static_cast<int>(std::ceil(bytes / machine.gpu.usable_memory.as_double()));
}

}  // namespace

CapacityAnswer answer_capacity(const Scenario& s, const Machine& machine, const StepSummary& step,
                               const CapacityQuestion& q) {
  CapacityAnswer a;
  const int node = s.cluster.gpus_per_node;
  a.price = price_of(s, machine, q);
  if (q.gpus)
    a.gpus = *q.gpus;
  else if (q.days)
    a.gpus = gpus_for_days(step, q, node);
  else
    a.gpus = gpus_for_budget(step, q, node, a.price);
  a.goodput = daly_goodput(a.gpus, q.failures);
  a.days = days_on(step, q, a.gpus);
  a.tokens_per_s = rate(step, q, a.gpus) * a.gpus;
  a.gpu_hours = a.days * 24.0 * a.gpus * (1.0 + q.spare_share);
  a.cost = a.gpu_hours * a.price;
  a.cost_per_trillion = a.cost / (q.tokens / 1e12);
  a.extrapolated = a.gpus != s.cluster.gpus();
  const double parameters = static_cast<double>(audit(s.model).total_parameters);
  const OptimizerConfig& o = s.optimizer;
  const double weights = o.parameter_bytes.as_double(),
               states = weights + o.gradient_bytes.as_double() + (o.name == "none" ? 0.0 : o.state_bytes.as_double());
  a.gpus_for_weights = gpus_that_hold(parameters * weights, machine);
  a.gpus_for_states = gpus_that_hold(parameters * states, machine);
  return a;
}

std::vector<GoodputLever> goodput_levers(double gpus, const FailureRates& rates) {
  FailureRates checkpoint = rates, restart = rates, rate = rates;
  checkpoint.checkpoint_block = scale(rates.checkpoint_block, 0.5);
  restart.restart = scale(rates.restart, 0.5);
  rate.gpu_hours_per_interruption = rates.gpu_hours_per_interruption * 2.0;
  std::vector<GoodputLever> out{{"half the checkpoint cost", daly_goodput(gpus, checkpoint).share},
                                {"half the restart time", daly_goodput(gpus, restart).share},
                                {"half the interruptions", daly_goodput(gpus, rate).share}};
  std::stable_sort(out.begin(), out.end(),
                   [](const GoodputLever& x, const GoodputLever& y) { return x.goodput > y.goodput; });
  return out;
}

double relative_efficiency(const StepSummary& a, const StepSummary& b, double flops_ratio, double loss_factor) {
  const double system = b.mfu_pct / a.mfu_pct;
  return system / (flops_ratio * loss_factor);
}

}  // namespace k3sim
