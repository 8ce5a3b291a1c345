#include "tools/planner/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/base/check.h"

namespace k3sim {

namespace {

// Another cost model's times, divided by a factor for some kernel families.
class ScaledCost final : public CostModel {
 public:
  ScaledCost(std::shared_ptr<const CostModel> base, std::vector<KernelFamily> families, double factor)
      : base_(std::move(base)), families_(std::move(families)), factor_(factor) {}
  KernelTime time(const Kernel& kernel) const override {
    KernelTime t = base_->time(kernel);
    if (std::find(families_.begin(), families_.end(), kernel.family) != families_.end())
      t.time = scale(t.time, 1.0 / factor_);
    return t;
  }

 private:
  std::shared_ptr<const CostModel> base_;
  std::vector<KernelFamily> families_;
  double factor_;
};

void scale_kernels(Machine& m, std::vector<KernelFamily> families, double factor) {
  m.cost = std::make_shared<ScaledCost>(m.cost, std::move(families), factor);
}

void scale_nvlink(Machine& m, double factor) {
  m.comm.nvlink_rate *= factor;
  m.comm.p2p_rate = m.comm.p2p_rate * factor;
  for (auto& curves : m.comm.curves)
    for (TimeCurve& curve : curves) curve = rescaled(curve, factor, curve.seconds.front());
}

void scale_nic(Machine& m, double factor) {
  m.comm.scale_out.nic_payload = m.comm.scale_out.nic_payload * factor;
  m.comm.scale_out.all_to_all_payload = m.comm.scale_out.all_to_all_payload * factor;
}

struct Input {
  const char* name;
  void (*change)(Machine&, double);
};

constexpr Input kInputs[] = {
    {"GEMM rate",
     [](Machine& m, double f) {
       scale_kernels(m, {KernelFamily::gemm, KernelFamily::grouped_gemm}, f);
     }},
    {"attention rate", [](Machine& m, double f) { scale_kernels(m, {KernelFamily::attention}, f); }},
    {"KDA rate",
     [](Machine& m, double f) {
       scale_kernels(m, {KernelFamily::kda, KernelFamily::kda_prepass}, f);
     }},
    {"memory-bound kernels",
     [](Machine& m, double f) {
       scale_kernels(m, {KernelFamily::memory, KernelFamily::topk}, f);
     }},
    {"optimizer kernels",
     [](Machine& m, double f) {
       scale_kernels(m, {KernelFamily::optimizer, KernelFamily::newton_schulz}, f);
     }},
    {"NVLink bandwidth", scale_nvlink},
    {"NIC bandwidth", scale_nic},
    {"expert exchange", [](Machine& m, double f) { m.software.ep_efficiency *= f; }},
    {"expert imbalance", [](Machine& m, double f) { m.imbalance /= f; }},
    {"host link", [](Machine& m, double f) { m.gpu.host_link = m.gpu.host_link * f; }},
    {"kernel launch",
     [](Machine& m, double f) {
       m.software.host_launch = scale(m.software.host_launch, 1.0 / f);
       m.software.host_action = scale(m.software.host_action, 1.0 / f);
     }},
};

// What policy auto chose on the machine as it is: an input that gets worse does not bring a new search with it.
std::shared_ptr<const std::vector<PolicyChoice>> chosen(const Scenario& s, const Machine& m, StepOptions options) {
  if (s.activation.policy != "auto") return {};
  options.keep_graph = true;
  return std::make_shared<const std::vector<PolicyChoice>>(predict_step(s, m, options).plan->choices);
}

double step_of(const Scenario& s, const Machine& m, const StepOptions& options) {
  return predict_step(s, m, options).summary.step.seconds();
}

}  // namespace

const std::vector<std::string>& sensitivity_inputs() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Input& i : kInputs) out.emplace_back(i.name);
    return out;
  }();
  return names;
}

Machine scaled_machine(const Machine& machine, const std::string& input, double factor) {
  for (const Input& i : kInputs) {
    if (input != i.name) continue;
    Machine m = machine;
    i.change(m, factor);
    return m;
  }
  CS_CHECK(false, "no input is called '{}'", input);
}

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Machine& machine, const StepOptions& options,
                                       double change) {
  StepOptions quick = options;
  quick.memory.emulated_ranks = 0;
  quick.keep_graph = false;
  quick.reuse = {};
  quick.reuse.choices = chosen(scenario, machine, quick);
  const double base = step_of(scenario, machine, quick);
  std::vector<Sensitivity> out;
  const RoutingConfig& routing = scenario.moe.routing;
  const bool balanced = routing.source == "balanced" && routing.skew_sigma == 0;
  for (const std::string& input : sensitivity_inputs()) {
    if (balanced && input == "expert imbalance") continue;
    const double worse = step_of(scenario, scaled_machine(machine, input, 1.0 / (1.0 + change)), quick);
    const double better = step_of(scenario, scaled_machine(machine, input, 1.0 + change), quick);
    out.push_back({input, 100.0 * (worse / base - 1.0), 100.0 * (better / base - 1.0)});
  }
  std::stable_sort(out.begin(), out.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.step_change_pct) > std::abs(b.step_change_pct);
  });
  return out;
}

}  // namespace k3sim
