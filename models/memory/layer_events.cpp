// See layer_events.h. Source: the rules named there; closed form of the same walk: LayerGraph::forward_peak and
// backward_peak, which the property tests compare with.
#include "models/memory/layer_events.h"

#include <algorithm>

#include "models/memory/backward_events.h"
#include "models/memory/event_list.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

class ForwardWalk {
 public:
  ForwardWalk(const LayerTensors& tensors, bool keeping) : t_(tensors), keeping_(keeping) {}

  // Operations first..last; with `keeping` kept tensors stay, otherwise only those the policy does not drop.
  void run(EventList& list) const {
    const auto n = static_cast<int>(t_.layer.operations.size());
    for (int i = 1; i < n; ++i) operation(i, list);
  }

 private:
  bool stays(int node) const {
    const int k = t_.kept_of[static_cast<std::size_t>(node)];
    return k >= 0 && t_.same_memory(k) && (keeping_ || !t_.dropped[static_cast<std::size_t>(k)]);
  }

  void operation(int i, EventList& list) const {
    const LivenessOperation& op = t_.layer.operations[static_cast<std::size_t>(i)];
    const std::uint16_t made = t_.tensor_of[static_cast<std::size_t>(i)];
    if (op.forward_script.empty()) list.alloc(made);
    std::vector<std::uint16_t> brief;
    for (std::size_t k = 0; k < t_.layer.kept.size(); ++k) {
      const KeptTensor& kept = t_.layer.kept[k];
      const bool made_here = kept.extra ? kept.holder == i : !t_.same_memory(static_cast<int>(k)) && kept.holder == i;
      if (!made_here) continue;
      list.alloc(t_.kept_tensor[k]);
      if (!keeping_ && t_.dropped[k]) brief.push_back(t_.kept_tensor[k]);
    }
    if (!op.forward_script.empty()) {
      run_script(op.forward_script, t_.forward_slots[static_cast<std::size_t>(i)], list,
                 [&](int) { list.alloc(made); });
    } else if (op.forward_scratch.count() > 0) {
      list.alloc(t_.scratch[static_cast<std::size_t>(i)]);
      list.free(t_.scratch[static_cast<std::size_t>(i)]);
    }
    for (std::uint16_t b : brief) list.free(b);
    release_inputs(i, op, list);
    // A tensor that nobody reads inside the layer and that is not its output.
    if (op.last_reader < 0 && i != t_.layer.output && !stays(i)) list.free(made);
  }

  // Whose memory a tensor lies in.
  int owner(int n) const {
    const LivenessOperation& op = t_.layer.operations[static_cast<std::size_t>(n)];
    return op.view ? owner(op.inputs.front()) : n;
  }

  void release_inputs(int i, const LivenessOperation& op, EventList& list) const {
    std::vector<int> seen;
    for (int input : op.inputs) {
      const int n = owner(input);
      if (std::find(seen.begin(), seen.end(), n) != seen.end()) continue;
      seen.push_back(n);
      if (t_.layer.operations[static_cast<std::size_t>(n)].last_reader != i || stays(n)) continue;
      if (n == 0 && keeping_) continue;  // a replay starts from the kept input
      list.free(t_.tensor_of[static_cast<std::size_t>(n)]);
    }
  }

  const LayerTensors& t_;
  bool keeping_;
};

// Copies to narrow tensors at the end of forward, and their counterpart before backward.
void store(const LayerTensors& t, LayerEvents& out, EventList& forward, EventList& restore) {
  for (std::size_t k = 0; k < t.layer.kept.size(); ++k) {
    if (t.dropped[k]) continue;
    const std::uint16_t id = t.kept_tensor[k];
    if (id == kLayerInput && t.layer.operations[0].output.count() == 0) continue;
    const EventTensor wide = out.tensors[id];
    std::uint16_t kept = id;
    if (t.treatment[k].fp8) {
      kept = static_cast<std::uint16_t>(out.tensors.size());
      EventTensor narrow = wide;
      narrow.role = MemoryRole::kept;
      narrow.bytes = fp8_tile_bytes(wide.bytes);
      out.tensors.push_back(narrow);
      forward.alloc(kept);
      forward.free(id);
      restore.alloc(id);
      restore.free(kept);
    }
    if (!t.treatment[k].leaves()) continue;
    out.stored.push_back(kept);
    out.stored_bytes += out.tensors[kept].bytes;
    if (t.treatment[k].place == StoragePlace::remote) out.remote_bytes += out.tensors[kept].bytes;
  }
}

// Per-operator checkpoints cache every second matrix product; what is rebuilt takes them over.
void keep_products(const LayerTensors& t, LayerEvents& out, EventList& forward, EventList& restore) {
  if (!t.policy.half_products) return;
  Bytes half;
  for (const LivenessOperation& o : t.layer.operations)
    if (o.has_weight_gradient) half += Bytes(o.output.count() / 2);
  const auto id = static_cast<std::uint16_t>(out.tensors.size());
  out.tensors.push_back({"kept_products", Module::residual, MemoryRole::kept, half, false});
  forward.alloc(id);
  restore.free(id);
}

// The layer's output belongs to its reader and is not among them.
std::vector<std::uint16_t> held_tensors(const LayerEvents& layer) {
  std::vector<bool> alive(layer.tensors.size(), false);
  alive[kLayerInput] = true;
  for (const MemoryEvent& e : layer.forward.events) alive[e.tensor] = e.alloc;
  alive[kLayerOutput] = false;
  std::vector<std::uint16_t> out;
  for (std::size_t t = 0; t < alive.size(); ++t)
    if (alive[t] && layer.tensors[t].bytes > Bytes(0)) out.push_back(static_cast<std::uint16_t>(t));
  return out;
}

PassEvents finish(const std::vector<EventTensor>& tensors, EventList list, int input_gradient) {
  PassEvents p;
  p.events = std::move(list.events);
  p.input_gradient = input_gradient;
  measure(tensors, p);
  return p;
}

}  // namespace

PassSize pass_size(const std::vector<EventTensor>& tensors, const MemoryEvents& events, double row_factor) {
  std::int64_t live = 0, peak = 0;
  for (const MemoryEvent& e : events) {
    const std::int64_t bytes = size_of(tensors[e.tensor], row_factor).count();
    live += e.alloc ? bytes : -bytes;
    peak = std::max(peak, live);
  }
  return {Bytes(peak), live};
}

void measure(const std::vector<EventTensor>& tensors, PassEvents& pass) {
  const PassSize size = pass_size(tensors, pass.events, 1.0);
  pass.peak = size.peak;
  pass.change = size.change;
}

LayerEvents layer_events(const Liveness& layer, const StoragePolicy& policy) {
  LayerEvents out;
  const LayerTensors t = make_layer_tensors(layer, policy, out.tensors);
  for (std::size_t k = 0; k < layer.kept.size(); ++k)
    out.kept.push_back({layer.kept[k].name, layer.kept[k].bytes, t.treatment[k]});
  EventList forward(out.tensors), restore(out.tensors);
  ForwardWalk(t, false).run(forward);
  keep_products(t, out, forward, restore);
  store(t, out, forward, restore);
  EventList whole(out.tensors), input(out.tensors), weight(out.tensors);
  whole.append(restore);
  input.append(restore);
  if (policy.full) {
    // The rebuilt output lives until the backward call of the checkpoint returns.
    ForwardWalk(t, true).run(whole);
    ForwardWalk(t, true).run(input);
  }
  const int handed = backward_events(t, false, whole, weight);
  const int split_handed = backward_events(t, true, input, weight);
  if (policy.full) {
    whole.free(kLayerOutput);
    input.free(kLayerOutput);
  }
  out.forward = finish(out.tensors, std::move(forward), -1);
  out.backward = finish(out.tensors, std::move(whole), handed);
  out.input_grad = finish(out.tensors, std::move(input), split_handed);
  out.weight_grad = finish(out.tensors, std::move(weight), -1);
  out.held = held_tensors(out);
  return out;
}

}  // namespace k3sim
