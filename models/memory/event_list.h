// Shared by the forward and backward walks of layer_events: the tensors of a layer with their numbers, and a list of
// events that leaves out tensors of zero bytes.
// Source: internal.
#pragma once

#include <vector>

#include "models/memory/layer_events.h"

namespace k3sim {

class EventList {
 public:
  explicit EventList(const std::vector<EventTensor>& tensors) : tensors_(tensors) {}
  void alloc(std::uint16_t t) { push(t, true); }
  void free(std::uint16_t t) { push(t, false); }
  void append(const EventList& other) { events.insert(events.end(), other.events.begin(), other.events.end()); }
  MemoryEvents events;

 private:
  void push(std::uint16_t t, bool alloc) {
    if (tensors_[t].bytes.count() > 0) events.push_back({t, alloc});
  }
  const std::vector<EventTensor>& tensors_;
};

// Runs an operation's script: scratch by slot, `result` where the operation's own tensors are made.
template <typename Result>
void run_script(const ScratchScript& script, const std::vector<std::uint16_t>& slots, EventList& list,
                const Result& result) {
  std::vector<bool> live(slots.size(), false);
  for (const ScratchStep& s : script.steps()) {
    if (s.kind == ScratchStep::Kind::result) {
      result(s.slot);
      continue;
    }
    const auto slot = static_cast<std::size_t>(s.slot);
    live[slot] = s.kind == ScratchStep::Kind::make;
    live[slot] ? list.alloc(slots[slot]) : list.free(slots[slot]);
  }
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (live[i]) list.free(slots[i]);
}

// Numbers of a layer's tensors.
struct LayerTensors {
  const Liveness& layer;
  const StoragePolicy& policy;
  std::vector<std::uint16_t> tensor_of = {};     // by operation: its output
  std::vector<std::uint16_t> gradient_of = {};   // by operation: gradient of its output, when it is a tensor of its own
  std::vector<std::uint16_t> contribution = {};  // by operation: one more reader's gradient, before it is added
  std::vector<std::uint16_t> sum = {};           // by operation: the sum when the gradient so far belongs to others
  std::vector<std::uint16_t> scratch = {}, gradient_scratch = {}, weight_gradient = {};  // by operation
  std::vector<std::uint16_t> narrow_gradient = {};  // by operation: its output gradient in FP8, for a deferred product
  std::vector<std::vector<std::uint16_t>> forward_slots = {}, backward_slots = {};  // by operation: of its script
  std::vector<int> kept_of = {};                // by operation: entry of layer.kept for its output; -1: none
  std::vector<std::uint16_t> kept_tensor = {};  // by entry of layer.kept
  std::vector<bool> dropped = {};               // by entry of layer.kept: rebuilt in backward
  std::vector<TensorTreatment> treatment = {};  // by entry of layer.kept
  std::size_t count = 0;                        // tensors in all

  // Kept as it was made, not as a narrower copy.
  bool same_memory(int kept) const {
    const KeptTensor& k = layer.kept[static_cast<std::size_t>(kept)];
    return !k.extra && kept_tensor[static_cast<std::size_t>(kept)] == tensor_of[static_cast<std::size_t>(k.producer)];
  }
};

LayerTensors make_layer_tensors(const Liveness& layer, const StoragePolicy& policy, std::vector<EventTensor>& tensors);

}  // namespace k3sim
