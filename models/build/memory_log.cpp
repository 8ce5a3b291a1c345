// See memory_log.h. Source: engine-design section 10.
#include "models/build/memory_log.h"

namespace k3sim {

namespace {

constexpr MemoryStream kCompute = 0;

MemoryCategory category_of(MemoryRole role) {
  switch (role) {
    case MemoryRole::kept:
      return MemoryCategory::activations;
    case MemoryRole::transient:
      return MemoryCategory::activations;
    case MemoryRole::gradient:
      return MemoryCategory::activation_gradients;
    case MemoryRole::workspace:
      return MemoryCategory::workspace;
    case MemoryRole::weight_gradient:
      return MemoryCategory::weight_gradients;
  }
  return MemoryCategory::workspace;
}

class LogSink final : public MemorySink {
 public:
  explicit LogSink(MemoryLog& log) : log_(log) { log_.requests.reserve(1 << 16); }

  MemoryHandle alloc(Bytes bytes, MemoryCategory category, const MemoryPlace& place) override {
    if (bytes.count() <= 0) return {};
    log_.places.push_back(place);
    return {bytes, log_.requests.alloc({.bytes = bytes,
                                        .stream = kCompute,
                                        .category = static_cast<std::uint8_t>(category),
                                        .tag = static_cast<std::uint32_t>(log_.places.size() - 1)})};
  }
  void free(const MemoryHandle& h) override {
    if (h.bytes.count() > 0) log_.requests.free(h.id);
  }

  MemoryHandle run(const LayerCall& c) override {
    const std::vector<EventTensor>& tensors = c.layer.tensors;
    c.slot.ids.resize(tensors.size());
    const bool forward = c.pass == LayerPass::forward;
    if (c.pass != LayerPass::weight_grad) c.slot.ids[forward ? kLayerInput : kOutputGradient] = c.incoming.id;
    const PassEvents& pass = events_of(c.layer, c.pass);
    for (const MemoryEvent& e : pass.events) {
      if (e.alloc)
        c.slot.ids[e.tensor] = tensor(tensors[e.tensor], c);
      else
        log_.requests.free(c.slot.ids[e.tensor]);
    }
    const int handed = forward ? kLayerOutput : pass.input_gradient;
    if (handed < 0) return {};
    const auto index = static_cast<std::size_t>(handed);
    return {tensors[index].bytes, c.slot.ids[index]};
  }

  void store(const LayerEvents& layer, LayerSlot& slot, bool out, const MemoryPlace& place,
             double row_factor) override {
    for (std::uint16_t t : layer.stored) {
      if (layer.tensors[t].bytes.count() == 0) continue;
      if (out)
        log_.requests.free(slot.ids[t]);
      else
        slot.ids[t] = alloc(size_of(layer.tensors[t], row_factor), MemoryCategory::activations, place).id;
    }
  }

  void lend(const LayerEvents& layer, LayerSlot& slot, const Lending& how, const MemoryPlace& place) override {
    for (std::uint16_t t : layer.held) {
      if (!how.moves(layer, t)) continue;
      if (how.out)
        log_.requests.free(slot.ids[t]);
      else
        slot.ids[t] = alloc(layer.tensors[t].bytes, MemoryCategory::activations, place).id;
    }
  }

  void action_done(const Action& action) override {
    log_.actions.push_back(action);
    log_.action_ends.push_back(log_.requests.size());
  }

 private:
  MemoryId tensor(const EventTensor& t, const LayerCall& c) {
    MemoryPlace place = c.place;
    place.name = *t.name != '\0' ? t.name : to_string(t.module);
    return alloc(size_of(t, c.row_factor), category_of(t.role), place).id;
  }

  MemoryLog& log_;
};

}  // namespace

MemoryLog memory_log(const StepPlan& plan, const SoftwareProfile& software, int rank,
                     const MemoryWalkOptions& options) {
  MemoryLog log;
  LogSink sink(log);
  walk_memory(plan, software, rank, options, sink);
  return log;
}

AllocatorPolicy allocator_policy(const Scenario& scenario, const SoftwareProfile& software) {
  std::string conf = scenario.memory.conf.empty() ? software.allocator_conf : scenario.memory.conf;
  AllocatorPolicy policy = parse_alloc_conf(conf);
  if (scenario.memory.allocator != "stack") policy.expandable_segments = scenario.memory.allocator == "expandable";
  return policy;
}

}  // namespace k3sim
