// How far published runs lay from predictions by constants that had not seen them: measured over predicted step time,
// by kind of model. An interval around a prediction follows; `k3sim validate --cross-validate` measures it and tests
// what it covers. Source: hardware_profiles/step_errors.yaml (own, from the runs in scenarios/validation).
#pragma once

#include "models/config/model_spec.h"
#include "sim/base/units.h"

namespace k3sim {

// Measured over predicted: 80 % of the runs lie between low80 and high80, 95 % between low95 and high95.
struct StepErrors {
  double low95 = 0, low80 = 0, high80 = 0, high95 = 0;
  int runs = 0;
};

// Of models like this one: dense, or with routed experts. Throws ConfigError when the file is damaged.
const StepErrors& step_errors(const ModelSpec& model);

}  // namespace k3sim
