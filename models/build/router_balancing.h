// What balancing the router costs a step: the statistics that data-parallel ranks add up, per MoE layer.
//   quantile         experts x 1,000 bins x 4 bytes, one integer all-reduce (k3-facts 2.9)
//   fixed_step       experts x 4 bytes, one all-reduce (DeepSeek-V3 report 2.1.2)
//   auxiliary_loss   the same once per micro-batch
// Source: models/moe/quantile_balancing.h (traffic). Valid for statistics over all data-parallel ranks.
#pragma once

#include "models/build/step_plan.h"
#include "models/moe/quantile_balancing.h"

namespace k3sim {

BalancingMethod balancing_method(const std::string& name);

// All-reduced per MoE layer and step, and its time; 0 without experts or balancing.
Bytes router_statistics_bytes(const StepPlan& plan);
Time router_statistics_time(const StepPlan& plan);

}  // namespace k3sim
