// Presets and named modules -> what is recomputed, shrunk or sent to the host. Source: k3-facts 2.4 (K3), 2.11 (K2);
// Korthikanti et al. 2022 (selective recompute).
#include "models/build/activation_policy.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

const std::vector<std::string>& activation_policy_names() {
  static const std::vector<std::string> names{"none",           "keep_all", "selective",  "per_operator", "full",
                                              "full_recompute", "k2",       "k3_unified", "unified",      "auto"};
  return names;
}

namespace {

void mark(RecomputePolicy& policy, std::initializer_list<Module> modules) {
  for (Module m : modules) policy.modules[static_cast<std::size_t>(m)] = true;
}

void mark_by_name(RecomputePolicy& policy, const std::string& name) {
  std::vector<std::string> known;
  for (int i = 0; i < kModules; ++i) {
    const auto m = static_cast<Module>(i);
    if (name == to_string(m)) return mark(policy, {m});
    known.emplace_back(to_string(m));
  }
  throw ConfigError({Problem{{}, "activation.recompute", "unknown module '" + name + "'", did_you_mean(name, known)}});
}

}  // namespace

RecomputePolicy make_recompute_policy(const ActivationConfig& config, const ModelSpec&) {
  RecomputePolicy policy;
  const std::string& name = config.policy;
  if (name == "selective") {
    mark(policy, {Module::core_attention});
  } else if (name == "per_operator") {
    policy.half_products = true;
    mark(policy, {Module::norm, Module::activation});
  } else if (name == "full" || name == "full_recompute") {
    policy.full = true;
  } else if (name == "k2") {
    mark(policy,
         {Module::norm, Module::activation, Module::shared_activation, Module::expert_activation, Module::mla_up_proj});
  } else if (name == "unified" || name == "k3_unified") {
    mark(policy, {Module::norm, Module::activation, Module::shared_activation, Module::expert_activation,
                  Module::attnres, Module::mla_up_proj, Module::dispatch, Module::gate});
    policy.fp8 = policy.offload = true;
  } else if (name != "none" && name != "keep_all" && name != "auto") {
    throw ConfigError({Problem{{},
                               "activation.policy",
                               "unknown policy '" + config.policy + "'",
                               did_you_mean(config.policy, activation_policy_names())}});
  }
  policy.offload = name != "auto" && (policy.offload || config.offload);
  for (const std::string& word : config.forbid) {
    const std::vector<std::string> known{"fp8", "offload", "remote_offload", "recompute"};
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw ConfigError({Problem{{}, "activation.forbid", "unknown word '" + word + "'", did_you_mean(word, known)}});
    if (word == "fp8") policy.fp8 = false;
    if (word == "offload") policy.offload = false;
    if (word == "recompute") policy.full = false, policy.modules = {};
  }
  for (const std::string& module : config.recompute) mark_by_name(policy, module);
  for (const TensorRule& rule : config.tensors)
    policy.rules.push_back({rule.match, parse_treatment(rule.policy, "activation.tensors")});
  return policy;
}

}  // namespace k3sim
