// Source: router_balancing.h.
#include "models/build/router_balancing.h"

#include <algorithm>

namespace k3sim {

namespace {

BalancingSpec spec_of(const StepPlan& plan) {
  BalancingSpec spec;
  spec.method = BalancingMethod::kNone;
  const std::vector<LayerSpec>& layers = plan.scenario.model.layers;
  const auto moe = std::find_if(layers.begin(), layers.end(), [](const LayerSpec& l) { return l.ffn.is_moe(); });
  if (moe == layers.end()) return spec;
  spec.method = balancing_method(plan.scenario.moe.balancing);
  spec.experts = static_cast<int>(moe->ffn.experts);
  spec.micro_batches = static_cast<int>(plan.microbatches);
  return spec;
}

}  // namespace

BalancingMethod balancing_method(const std::string& name) {
  if (name == "quantile") return BalancingMethod::kQuantile;
  if (name == "fixed_step") return BalancingMethod::kFixedStep;
  return name == "auxiliary_loss" ? BalancingMethod::kAuxiliaryLoss : BalancingMethod::kNone;
}

Bytes router_statistics_bytes(const StepPlan& plan) {
  return balancing_traffic(spec_of(plan));
}

Time router_statistics_time(const StepPlan& plan) {
  const BalancingSpec spec = spec_of(plan);
  const Bytes bytes = balancing_traffic(spec);
  if (bytes == Bytes(0)) return Time();
  // The loss needs the loads of every micro-batch by themselves: that many small all-reduces.
  const int calls = spec.method == BalancingMethod::kAuxiliaryLoss ? spec.micro_batches : 1;
  const Bytes each(bytes.count() / calls);
  return calls * plan.comm->collective(Collective::all_reduce, each, GroupKind::dp).time;
}

}  // namespace k3sim
