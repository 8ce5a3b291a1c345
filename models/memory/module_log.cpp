// See module_log.h. Source: measurements README (how the modules were built).
#include "models/memory/module_log.h"

#include <algorithm>

#include "models/memory/layer_events.h"

namespace k3sim {

namespace {

struct Link {
  LayerEvents events;
  Bytes weights;
  std::vector<MemoryId> ids;
};

class ChainLog {
 public:
  ChainLog(const ModelSpec& model, const ModuleChain& chain) : chain_(chain) {
    for (std::size_t i = 0; i < chain.modules.size(); ++i) {
      ModuleOptions own = chain.options;
      own.gradient_held = i + 1 == chain.modules.size();
      const LayerProgram p = module_program(model, chain.modules[i], chain.tokens, own);
      Link link{layer_events(*p.liveness, {}), Bytes(2 * module_parameters(model, chain.modules[i], own)), {}};
      link.ids.resize(link.events.tensors.size());
      links_.push_back(std::move(link));
    }
  }

  RequestLog run() {
    const Bytes input = links_.front().events.tensors[kLayerInput].bytes;
    Bytes rest = chain_.base - input;
    for (const Link& l : links_) {
      for (const EventTensor& t : l.events.tensors)
        if (t.role == MemoryRole::weight_gradient) alloc(t.bytes);
      alloc(l.weights - products(l));
      rest -= l.weights;
    }
    alloc(rest);
    input_ = alloc(input);
    for (int i = 0; i < chain_.passes; ++i) pass(i == 0);
    if (chain_.passes > 0) log_.free(output_);
    return std::move(log_);
  }

 private:
  // Weights of matrix products: as large as their gradients.
  static Bytes products(const Link& l) {
    Bytes sum;
    for (const EventTensor& t : l.events.tensors)
      if (t.role == MemoryRole::weight_gradient) sum += t.bytes;
    return std::min(sum, l.weights);
  }

  MemoryId alloc(Bytes bytes) { return bytes.count() > 0 ? log_.alloc({.bytes = bytes}) : 0; }

  // Tensors that belong to the caller are neither made nor freed here.
  void replay(Link& l, const MemoryEvents& events, bool callers_input, bool callers_gradient, bool first = false) {
    for (const MemoryEvent& e : events) {
      if ((callers_input && e.tensor == kLayerInput) || (callers_gradient && e.tensor == kOutputGradient)) continue;
      // The first pass's weight gradients stay: later ones are added to them.
      if (first && !e.alloc && l.events.tensors[e.tensor].role == MemoryRole::weight_gradient) continue;
      if (e.alloc)
        l.ids[e.tensor] = alloc(l.events.tensors[e.tensor].bytes);
      else
        log_.free(l.ids[e.tensor]);
    }
  }

  void pass(bool first) {
    MemoryId handed = input_;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].ids[kLayerInput] = handed;
      replay(links_[i], links_[i].events.forward.events, i == 0, false);
      handed = links_[i].ids[kLayerOutput];
    }
    // The caller's variable holds the output until the next pass has made the next one.
    if (!first) log_.free(output_);
    output_ = handed;
    for (std::size_t i = links_.size(); i-- > 0;) {
      Link& l = links_[i];
      const bool last = i + 1 == links_.size();
      l.ids[kOutputGradient] = handed;
      replay(l, l.events.backward.events, i == 0, last, first);
      if (first) alloc(l.weights - products(l));  // gradients of the weights outside matrix products
      const int g = l.events.backward.input_gradient;
      handed = g < 0 ? 0 : l.ids[static_cast<std::size_t>(g)];
      // The caller holds the output's gradient: what is added to it on the way becomes a tensor of its own.
      if (last && g == kOutputGradient) handed = alloc(l.events.tensors[kOutputGradient].bytes);
      if (i == 0 && g >= 0) log_.free(handed);
    }
  }

  const ModuleChain& chain_;
  std::vector<Link> links_;
  RequestLog log_;
  MemoryId input_ = 0, output_ = 0;
};

}  // namespace

RequestLog module_log(const ModelSpec& model, const ModuleChain& chain) {
  return ChainLog(model, chain).run();
}

}  // namespace k3sim
