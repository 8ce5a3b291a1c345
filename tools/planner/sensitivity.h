// What 10 % on each input does to the step: the machine's numbers are scaled one at a time and the step is predicted
// again, with the activation policy that was chosen. "expert imbalance": what routing adds to balanced rows, exchanges
// and weight pushes, with the same draws (a skew drawn anew changes a plan of replicas by more than 10 % of the skew
// does). Positive change: the step gets longer when the input gets 10 % worse. Source: issue "What-if" (sensitivity);
// peers.md (d) 9.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"

namespace k3sim {

struct Sensitivity {
  std::string input;           // "GEMM rate", "NIC bandwidth", ...
  double step_change_pct = 0;  // input 10 % worse
  double step_gain_pct = 0;    // input 10 % better (negative: the step gets shorter)
};

// Largest effect first. `change` is 0.1 for 10 %.
std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Machine& machine, const StepOptions& options,
                                       double change = 0.1);

// The machine with one input scaled: `factor` above 1 is better. Inputs: names of sensitivity_inputs().
const std::vector<std::string>& sensitivity_inputs();
Machine scaled_machine(const Machine& machine, const std::string& input, double factor);

}  // namespace k3sim
