// Reverse walk over a layer's operations: gradients with reference counts, rebuilt tensors, deferred weight gradients.
// Source: layer_events.h (rules).
#include "models/memory/backward_events.h"

#include <algorithm>

namespace k3sim {

namespace {

constexpr int kNone = -1;

class BackwardWalk {
 public:
  BackwardWalk(const LayerTensors& t, bool split, EventList& list, EventList& weight)
      : t_(t), split_(split), list_(list), weight_(weight) {
    const std::size_t n = t.layer.operations.size();
    gradient_.assign(n, kNone);
    readers_.assign(t.count, 0);
    held_.assign(readers_.size(), false);
    rebuilt_.assign(t.layer.kept.size(), t.policy.full);
  }

  int run() {
    own(t_.layer.output, kOutputGradient);
    if (t_.policy.half_products) rebuild_all();
    for (std::size_t r = t_.layer.operations.size(); r-- > 1;) operation(static_cast<int>(r));
    return gradient_[0];
  }

 private:
  const LivenessOperation& op(int i) const { return t_.layer.operations[static_cast<std::size_t>(i)]; }
  int& gradient(int node) { return gradient_[static_cast<std::size_t>(node)]; }
  int& readers(int tensor) { return readers_[static_cast<std::size_t>(tensor)]; }

  void own(int node, int tensor) {
    gradient(node) = tensor;
    ++readers(tensor);
  }

  void release(int node) {
    const int g = gradient(node);
    if (g == kNone || --readers(g) > 0) return;
    if (!held_[static_cast<std::size_t>(g)])
      list_.free(static_cast<std::uint16_t>(g));
    else
      weight_.free(static_cast<std::uint16_t>(g));
  }

  // A tensor for the gradient of `node`. The input's gradient leaves the layer under its own number.
  int fresh(int node) {
    const int g = t_.gradient_of[static_cast<std::size_t>(node)];
    list_.alloc(static_cast<std::uint16_t>(g));
    return g;
  }

  bool alone(int tensor) { return readers(tensor) == 1 && !held_[static_cast<std::size_t>(tensor)]; }

  void rebuild(std::size_t k) {
    if (rebuilt_[k] || !t_.dropped[k]) return;
    rebuilt_[k] = true;
    list_.alloc(t_.kept_tensor[k]);
  }
  void rebuild_all() {
    for (std::size_t k = 0; k < rebuilt_.size(); ++k) rebuild(k);
  }
  // The dropped tensors made by the run of equal modules around `producer`.
  void rebuild_run(int producer) {
    int first = producer, last = producer;
    const auto n = static_cast<int>(t_.layer.operations.size());
    while (first > 1 && op(first - 1).module == op(producer).module) --first;
    while (last + 1 < n && op(last + 1).module == op(producer).module) ++last;
    for (std::size_t k = 0; k < rebuilt_.size(); ++k)
      if (t_.layer.kept[k].producer >= first && t_.layer.kept[k].producer <= last) rebuild(k);
  }

  // The output gradient waits for the weight gradient, quantised when that product is in FP8.
  void hold_gradient(int r) {
    const std::uint16_t narrow = t_.narrow_gradient[static_cast<std::size_t>(r)];
    if (narrow != kLayerInput) {
      list_.alloc(narrow);
      weight_.free(narrow);
    } else if (gradient(r) != kNone) {
      held_[static_cast<std::size_t>(gradient(r))] = true;
    }
  }

  void operation(int r) {
    for (std::size_t k = 0; k < t_.layer.kept.size(); ++k)
      if (t_.layer.kept[k].holder == r && t_.dropped[k] && !rebuilt_[k]) rebuild_run(t_.layer.kept[k].producer);
    const bool defers = split_ && op(r).has_weight_gradient && !op(r).inputs.empty();
    if (defers) hold_gradient(r);
    std::vector<std::uint16_t> brief;
    const auto scratch = [&](Bytes bytes, std::uint16_t tensor) {
      if (bytes.count() == 0) return;
      list_.alloc(tensor);
      brief.push_back(tensor);
    };
    std::vector<Sum> sums;
    if (op(r).backward_script.empty()) {
      scratch(op(r).gradient_scratch, t_.gradient_scratch[static_cast<std::size_t>(r)]);
      if (!defers) scratch(op(r).weight_gradient, t_.weight_gradient[static_cast<std::size_t>(r)]);
      for (int n : op(r).inputs) input_gradient(r, n, sums);
    } else {
      run_script(op(r).backward_script, t_.backward_slots[static_cast<std::size_t>(r)], list_,
                 [&](int i) { input_gradient(r, op(r).inputs[static_cast<std::size_t>(i)], sums); });
    }
    for (std::uint16_t b : brief) list_.free(b);
    for (const Sum& s : sums) finish_sum(s);
    if (gradient(r) != kNone) release(r);
    release_kept(r, defers);
  }

  struct Sum {
    int node;
    bool in_place;
  };

  void input_gradient(int r, int n, std::vector<Sum>& sums) {
    if (op(n).gradient.count() == 0) return;
    if (gradient(n) == kNone) {
      if (op(r).shares_gradient && gradient(r) != kNone)
        own(n, gradient(r));
      else
        own(n, fresh(n));
      return;
    }
    if (op(r).shares_gradient || op(r).view) return;  // added where it is; joined with the other views' gradients
    const bool in_place = alone(gradient(n)) || gradient(n) == t_.sum[static_cast<std::size_t>(n)];
    // The new contribution is a tensor beside the existing sum until the addition has run.
    list_.alloc(t_.contribution[static_cast<std::size_t>(n)]);
    sums.push_back({n, in_place});
  }

  void finish_sum(const Sum& s) {
    const std::uint16_t brief = t_.contribution[static_cast<std::size_t>(s.node)];
    if (s.in_place) return list_.free(brief);
    // Out of place: a new tensor holds the sum, the contribution and the old gradient go.
    const std::uint16_t sum = t_.sum[static_cast<std::size_t>(s.node)];
    list_.alloc(sum);
    list_.free(brief);
    release(s.node);
    own(s.node, sum);
  }

  void release_kept(int r, bool defers) {
    for (std::size_t k = 0; k < t_.layer.kept.size(); ++k) {
      if (t_.layer.kept[k].holder != r) continue;
      (defers ? weight_ : list_).free(t_.kept_tensor[k]);
    }
  }

  const LayerTensors& t_;
  bool split_;
  EventList &list_, &weight_;
  std::vector<int> gradient_;  // by node: tensor of its gradient
  std::vector<int> readers_;   // by tensor
  std::vector<bool> held_;     // by tensor: waits for the weight-gradient pass
  std::vector<bool> rebuilt_;  // by kept tensor
};

}  // namespace

int backward_events(const LayerTensors& t, bool split, EventList& list, EventList& weight) {
  return BackwardWalk(t, split, list, weight).run();
}

}  // namespace k3sim
