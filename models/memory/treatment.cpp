// Presets first, then the rules by name. Source: layer_events.h, storage_rules.h.
#include "models/memory/layer_events.h"

namespace k3sim {

namespace {

bool dropped_by_preset(const StoragePolicy& p, const StoredTensor& t) {
  if (p.full) return !t.layer_input;
  if (p.half_products) return !t.layer_input && t.module != Module::core_attention;
  return t.recomputable && p.modules[static_cast<std::size_t>(t.module)];
}

}  // namespace

TensorTreatment treatment_of(const StoragePolicy& policy, const StoredTensor& tensor) {
  TensorTreatment out{dropped_by_preset(policy, tensor), policy.fp8,
                      policy.offload ? StoragePlace::host : StoragePlace::gpu};
  for (const StorageRule& rule : policy.rules) {
    if (!name_matches(rule.match, tensor.name)) continue;
    out = rule.treatment;
    // What cannot be rebuilt stays.
    out.recompute = out.recompute && tensor.recomputable && !tensor.layer_input;
  }
  out.fp8 = out.fp8 && !out.recompute && bytes_per_element(tensor.dtype) == 2.0;
  return out;
}

}  // namespace k3sim
