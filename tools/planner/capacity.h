// How long, on how many GPUs, for how much? One of days, GPUs and budget follows from the others and the tokens.
//   days = tokens / (tokens per second and GPU x GPUs x goodput) / 86,400;  cost = GPU hours x price
// Throughput per GPU is simulated at the scenario's size and held: weak scaling over data-parallel replicas, whose
// gradient traffic per rank does not grow (ring). Other sizes than the scenario's are therefore marked as such.
// Goodput: models/failure. Spare nodes are paid for but do not compute.
// Source: issue "What-if"; engine-design section 15.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/build/step.h"
#include "models/failure/goodput.h"

namespace k3sim {

struct CapacityQuestion {
  double tokens = 0;                         // required
  std::optional<double> days, gpus, budget;  // exactly one
  FailureRates failures;
  double price_per_gpu_hour = 0;  // 0: of the GPU profile
  double spare_share = 0;         // nodes that wait, as a share of those that work
  double straggler_share = 0;     // step time lost to slow ranks
};

struct CapacityAnswer {
  double gpus = 0, days = 0, gpu_hours = 0, cost = 0, cost_per_trillion = 0;
  double price = 0;
  double tokens_per_s = 0;  // of all GPUs, goodput included
  Goodput goodput;
  bool extrapolated = false;                      // another size than the scenario's
  int gpus_for_weights = 0, gpus_for_states = 0;  // least that hold them in GPU memory
};

CapacityAnswer answer_capacity(const Scenario& scenario, const Machine& machine, const StepSummary& step,
                               const CapacityQuestion& question);

// Which of checkpoint cost, restart time and interruption rate gains most when halved: goodput with each halved.
struct GoodputLever {
  const char* name;
  double goodput = 0;
};
std::vector<GoodputLever> goodput_levers(double gpus, const FailureRates& rates);

// Compute efficiency of two recipes: days x share when recipe B needs `loss_factor` times the compute for equal loss.
double relative_efficiency(const StepSummary& a, const StepSummary& b, double flops_ratio, double loss_factor);

}  // namespace k3sim
