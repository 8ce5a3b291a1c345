// See capacity.h. Source: engine-design section 15.
#include "tools/planner/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/transformer/layers.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

constexpr double kMostNodes = 131'072;

class Cluster {
 public:
  Cluster(const Scenario& s, const StepSummary& step, const CapacityQuestion& q, double price)
      : step_(step), q_(q), node_(s.cluster.gpus_per_node), price_(price) {}

  int node() const { return node_; }
  int spare_nodes(double gpus) const {
    if (q_.spares.kind == SparePolicy::Kind::replaced) return 0;
    if (q_.spares.kind == SparePolicy::Kind::fixed) return q_.spares.nodes;
    return spares_needed(out(gpus), q_.spares.probability);
  }
  double covered(double gpus) const {
    if (q_.spares.kind == SparePolicy::Kind::replaced) return 1.0;
    return share_covered(out(gpus), spare_nodes(gpus));
  }
  double effective(double gpus) const {
    return (1.0 - q_.straggler_share) * daly_goodput(gpus, q_.failures).share * covered(gpus);
  }
  double tokens_per_s(double gpus) const { return step_.tokens_per_s_per_gpu * effective(gpus) * gpus; }
  double days(double tokens, double gpus) const { return tokens / tokens_per_s(gpus) / 86'400.0; }
  double paid_gpus(double gpus) const { return gpus + spare_nodes(gpus) * node_; }
  double cost(double days, double gpus) const { return days * 24.0 * paid_gpus(gpus) * price_; }

  // Fewest GPUs, in whole nodes, that end in time. More GPUs help until failures eat the gain; then none does.
  double for_days(double tokens, double limit) const {
    for (double nodes = 1; nodes <= kMostNodes; nodes = next(nodes))
      if (days(tokens, nodes * node_) <= limit) return nodes * node_;
    throw ConfigError("no number of GPUs ends in time: failures eat what more GPUs gain", "--days");
  }
  // Most GPUs that the budget pays for all tokens: the cost per token only rises with the number of GPUs.
  double for_budget(double tokens, double budget) const {
    return most([&](double gpus) { return cost(days(tokens, gpus), gpus) <= budget; });
  }
  // Most GPUs that the budget pays for so long.
  double for_budget_and_days(double budget, double limit) const {
    return most([&](double gpus) { return cost(limit, gpus) <= budget; });
  }

 private:
  double out(double gpus) const {
    return nodes_in_repair(gpus / node_, q_.spares.repairs_per_node_hour, q_.spares.repair_hours);
  }
  static double next(double nodes) { return std::max(nodes + 1, std::floor(nodes * 1.002)); }
  template <class Pays>
  double most(const Pays& pays) const {
    if (!pays(node_)) throw ConfigError("not even one node is paid for by this budget", "--budget");
    double nodes = 1;
    while (next(nodes) <= kMostNodes && pays(next(nodes) * node_)) nodes = next(nodes);
    return nodes * node_;
  }

  const StepSummary& step_;
  const CapacityQuestion& q_;
  int node_;
  double price_;
};

double price_of(const Scenario& s, const Machine& m, const CapacityQuestion& q) {
  if (q.price_per_gpu_hour > 0) return q.price_per_gpu_hour;
  return s.cluster.price_per_gpu_hour > 0 ? s.cluster.price_per_gpu_hour : m.gpu.price_per_gpu_hour;
}

// Two of the four decide; the order is that of what planners hold fixed: tokens, GPUs, days, budget.
void solve(const CapacityQuestion& q, const Cluster& c, CapacityAnswer& a) {
  if (q.tokens && q.gpus) {
    a.tokens = *q.tokens, a.gpus = *q.gpus;
    a.days = c.days(a.tokens, a.gpus);
  } else if (q.tokens && q.days) {
    a.tokens = *q.tokens, a.gpus = c.for_days(*q.tokens, *q.days);
    a.days = c.days(a.tokens, a.gpus);
  } else if (q.tokens) {
    a.tokens = *q.tokens, a.gpus = c.for_budget(*q.tokens, *q.budget);
    a.days = c.days(a.tokens, a.gpus);
  } else {
    a.gpus = q.gpus ? *q.gpus : c.for_budget_and_days(*q.budget, *q.days);
    a.days = q.days ? *q.days : *q.budget / c.cost(1.0, a.gpus);
    a.tokens = c.tokens_per_s(a.gpus) * a.days * 86'400.0;
  }
}

void check_limits(const CapacityQuestion& q, CapacityAnswer& a) {
  constexpr double kRounding = 1 + 1e-9;
  if (q.days && a.days > *q.days * kRounding)
    a.broken.push_back(fmt::format("takes {:.1f} days, {:.1f} were given", a.days, *q.days));
  if (q.budget && a.cost > *q.budget * kRounding)
    a.broken.push_back(fmt::format("costs ${:.0f}, ${:.0f} were given", a.cost, *q.budget));
}

int gpus_that_hold(double bytes, const Machine& machine) {
  return static_cast<int>(std::ceil(bytes / machine.gpu.usable_memory.as_double()));
}

}  // namespace

Bytes checkpoint_bytes(const Scenario& s) {
  const OptimizerConfig& o = s.optimizer;
  const double per_parameter = o.parameter_bytes.as_double() + (o.name == "none" ? 0.0 : o.state_bytes.as_double());
  return Bytes::ceil(static_cast<double>(audit(s.model).total_parameters) * per_parameter);
}

CapacityAnswer answer_capacity(const Scenario& s, const Machine& machine, const StepSummary& step,
                               const CapacityQuestion& q) {
  CapacityAnswer a;
  a.price = price_of(s, machine, q);
  if (q.budget && a.price <= 0) throw ConfigError("needs a price per GPU hour", "--price");
  const Cluster cluster(s, step, q, a.price);
  solve(q, cluster, a);
  a.goodput = daly_goodput(a.gpus, q.failures);
  a.spare_nodes = cluster.spare_nodes(a.gpus);
  a.covered = cluster.covered(a.gpus);
  a.effective = cluster.effective(a.gpus);
  a.tokens_per_s = cluster.tokens_per_s(a.gpus);
  a.gpu_hours = a.days * 24.0 * a.gpus;
  a.paid_gpu_hours = a.days * 24.0 * cluster.paid_gpus(a.gpus);
  a.cost = a.paid_gpu_hours * a.price;
  a.cost_per_trillion = a.cost / (a.tokens / 1e12);
  a.extrapolated = a.gpus != s.cluster.gpus();
  check_limits(q, a);
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
  checkpoint.checkpoint_write = scale(rates.checkpoint_write, 0.5);
  restart.restart = scale(rates.restart, 0.5);
  rate.gpu_hours_per_interruption = rates.gpu_hours_per_interruption * 2.0;
  std::vector<GoodputLever> out{{"half the checkpoint cost", daly_goodput(gpus, checkpoint).share},
                                {"half the restart time", daly_goodput(gpus, restart).share},
                                {"half the interruptions", daly_goodput(gpus, rate).share}};
  std::stable_sort(out.begin(), out.end(),
                   [](const GoodputLever& x, const GoodputLever& y) { return x.goodput > y.goodput; });
  return out;
}

ScalingComparison compare_scaling(const StepSummary& a, const StepSummary& b, double compute_factor) {
  ScalingComparison c;
  c.compute_factor = compute_factor;
  c.system = b.model_tflops_per_gpu / a.model_tflops_per_gpu;
  c.gpu_hours = compute_factor / c.system;
  c.efficiency = 1.0 / c.gpu_hours;
  return c;
}

}  // namespace k3sim
