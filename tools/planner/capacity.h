// How many tokens, how long, on how many GPUs, for how much? Two of the four give the others; a third one is a limit
// that is checked.
//   days = tokens / (tokens per second and GPU x GPUs x goodput) / 86,400;  cost = paid GPU hours x price
// Throughput per GPU is simulated at the scenario's size and held: weak scaling over data-parallel replicas, whose
// gradient traffic per rank does not grow (ring). Other sizes than the scenario's are therefore marked as such.
// Goodput: models/failure, times the share of time in which spare nodes cover those in repair, times what stragglers
// leave. Spare nodes are paid for but do not compute.
// Source: issue "What-if"; engine-design section 15.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/build/step.h"
#include "models/failure/goodput.h"

namespace k3sim {

// Nodes that wait to replace those in repair. replaced: the owner of the cluster puts in another node at no cost.
struct SparePolicy {
  enum class Kind : std::uint8_t { replaced, covered, fixed } kind = Kind::replaced;
  int nodes = 0;                                // fixed
  double probability = 0.99;                    // covered: as many as cover the nodes in repair this often
  double repair_hours = 5.5 * 24;               // mean
  double repairs_per_node_hour = 0.00213 / 24;  // hardware faults alone (hardware notes 6.1)
};

struct CapacityQuestion {
  std::optional<double> tokens, days, gpus, budget;  // two or three of them
  FailureRates failures;
  SparePolicy spares;
  double price_per_gpu_hour = 0;  // 0: of the scenario or the GPU profile
  double straggler_share = 0;     // step time lost to slow ranks
};

struct CapacityAnswer {
  double tokens = 0, gpus = 0, days = 0, gpu_hours = 0, paid_gpu_hours = 0, cost = 0, cost_per_trillion = 0;
  double price = 0;
  double tokens_per_s = 0;  // of all GPUs, goodput included
  Goodput goodput;
  int spare_nodes = 0;
  double covered = 1;                             // share of time with enough nodes
  double effective = 1;                           // goodput x covered x (1 - stragglers)
  bool extrapolated = false;                      // another size than the scenario's
  std::vector<std::string> broken;                // limits that the answer does not keep
  int gpus_for_weights = 0, gpus_for_states = 0;  // least that hold them in GPU memory
};

// Throws ConfigError when no number of GPUs answers the question.
CapacityAnswer answer_capacity(const Scenario& scenario, const Machine& machine, const StepSummary& step,
                               const CapacityQuestion& question);

// Bytes of a full checkpoint: parameters and optimizer states.
Bytes checkpoint_bytes(const Scenario& scenario);

// Which of checkpoint cost, restart time and interruption rate gains most when halved: goodput with each halved.
struct GoodputLever {
  const char* name;
  double goodput = 0;
};
std::vector<GoodputLever> goodput_levers(double gpus, const FailureRates& rates);

// Two recipes at equal loss. `compute_factor`: training FLOPs that B needs for the loss that A reaches, over A's
// (declared: a result of scaling experiments). system: model FLOPs per second and GPU of B over A, as simulated.
struct ScalingComparison {
  double compute_factor = 1, system = 1;
  double gpu_hours = 1;   // of B over A: compute_factor / system
  double efficiency = 1;  // its inverse: how much further the same GPU hours go
};
ScalingComparison compare_scaling(const StepSummary& a, const StepSummary& b, double compute_factor);

}  // namespace k3sim
