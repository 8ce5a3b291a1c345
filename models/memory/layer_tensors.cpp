// Numbering of a layer's tensors and which of them the policy drops. See event_list.h.
// Source: layer_events.h (rules).
#include "models/memory/event_list.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

class Numbering {
 public:
  explicit Numbering(std::vector<EventTensor>& tensors) : tensors_(tensors) {}
  std::uint16_t add(const EventTensor& t) {
    CS_CHECK(tensors_.size() < 65535, "a layer with {} tensors", tensors_.size());
    tensors_.push_back(t);
    return static_cast<std::uint16_t>(tensors_.size() - 1);
  }

 private:
  std::vector<EventTensor>& tensors_;
};

TensorTreatment treatment(const KeptTensor& k, const StoragePolicy& p) {
  return treatment_of(p, {k.name, k.module, k.dtype, k.recomputable, !k.extra && k.producer == 0});
}

void number_kept(LayerTensors& t, std::vector<EventTensor>& tensors, Numbering& number) {
  for (std::size_t i = 0; i < t.layer.kept.size(); ++i) {
    const KeptTensor& k = t.layer.kept[i];
    t.treatment.push_back(treatment(k, t.policy));
    const bool drop = t.treatment.back().recompute;
    t.dropped.push_back(drop);
    const auto producer = static_cast<std::size_t>(k.producer);
    const Bytes whole = t.layer.operations[producer].output;
    if (!k.extra) t.kept_of[producer] = static_cast<int>(i);
    const bool copied = !k.extra && k.bytes != whole && !t.policy.wide_inputs;
    // The layer's output belongs to its reader: keeping it means a copy.
    const bool handed_on = !k.extra && k.producer == t.layer.output;
    if (k.extra || copied || handed_on) {
      t.kept_tensor.push_back(number.add({k.name, k.module, drop ? MemoryRole::transient : MemoryRole::kept, k.bytes,
                                          t.layer.operations[producer].exchanged}));
      continue;
    }
    const std::uint16_t own = t.tensor_of[producer];
    t.kept_tensor.push_back(own);
    tensors[own].name = k.name;
    if (!drop) tensors[own].role = MemoryRole::kept;
  }
}

}  // namespace

LayerTensors make_layer_tensors(const Liveness& layer, const StoragePolicy& policy, std::vector<EventTensor>& tensors) {
  LayerTensors t{.layer = layer, .policy = policy};
  Numbering number(tensors);
  const auto output = static_cast<std::size_t>(layer.output);
  const Bytes in = layer.operations[0].output, out = layer.operations[output].output;
  number.add({"layer.input", layer.operations[0].module, MemoryRole::transient, in, false});
  number.add({"layer.output", layer.operations[output].module, MemoryRole::transient, out, false});
  number.add({"layer.output_grad", Module::residual, MemoryRole::gradient, out, false});
  number.add({"layer.input_grad", Module::residual, MemoryRole::gradient, in, false});
  for (std::size_t i = 0; i < layer.operations.size(); ++i) {
    const LivenessOperation& o = layer.operations[i];
    const auto extra = [&](const char* name, MemoryRole role, Bytes bytes) {
      return bytes.count() > 0 ? number.add({name, o.module, role, bytes, o.exchanged}) : kLayerInput;
    };
    t.tensor_of.push_back(i == 0        ? kLayerInput
                          : i == output ? kLayerOutput
                                        : number.add({"", o.module, MemoryRole::transient, o.output, o.exchanged}));
    t.gradient_of.push_back(i == 0        ? kInputGradient
                            : i == output ? kOutputGradient
                                          : extra("gradient", MemoryRole::gradient, o.gradient));
    t.narrow_gradient.push_back(o.narrow_weight_gradient && !policy.wide_inputs
                                    ? extra("gradient_fp8", MemoryRole::gradient, fp8_tile_bytes(o.gradient))
                                    : kLayerInput);
    t.contribution.push_back(extra("gradient", MemoryRole::gradient, o.gradient));
    t.sum.push_back(extra("gradient_sum", MemoryRole::gradient, o.gradient));
    const auto slots = [&](const ScratchScript& script, const char* name) {
      std::vector<std::uint16_t> numbers;
      for (const ScratchStep& s : script.steps())
        if (s.kind == ScratchStep::Kind::make) numbers.push_back(extra(name, MemoryRole::workspace, s.bytes));
      return numbers;
    };
    t.forward_slots.push_back(slots(o.forward_script, "workspace"));
    t.backward_slots.push_back(slots(o.backward_script, "gradient_workspace"));
    t.scratch.push_back(extra("workspace", MemoryRole::workspace, o.forward_scratch));
    t.gradient_scratch.push_back(extra("gradient_workspace", MemoryRole::workspace, o.gradient_scratch));
    t.weight_gradient.push_back(extra("weight_grad", MemoryRole::weight_gradient, o.weight_gradient));
    t.kept_of.push_back(-1);
  }
  number_kept(t, tensors, number);
  t.count = tensors.size();
  return t;
}

}  // namespace k3sim
