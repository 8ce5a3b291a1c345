// Derivation of forward and backward item lists from the operation graph. See layer_graph.h for the rules.
// Source: PyTorch autograd: reverse order of creation, fan-out gradients summed in place.
#include "models/transformer/layer_graph.h"

#include <algorithm>

#include "models/transformer/liveness.h"
#include "sim/base/check.h"

namespace k3sim {
namespace {

using Indices = std::vector<std::uint16_t>;

void merge(Indices& into, const Indices& from) {
  into.insert(into.end(), from.begin(), from.end());
}

// Appends an item; an `after` list that only names the item before is left empty, as the program format has it.
std::uint16_t append(std::vector<Item>& list, const Step& step, Module module, Indices after) {
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  const auto index = static_cast<std::uint16_t>(list.size());
  if (index > 0 && after.size() == 1 && after[0] + 1 == index) after.clear();
  Item item;
  item.name = step.name;
  item.lane = step.lane;
  item.module = module;
  item.pass = step.is_comm ? Pass::forward : step.kernel.pass;
  item.is_comm = step.is_comm;
  item.kernel = step.kernel;
  item.comm = step.comm;
  item.after = std::move(after);
  list.push_back(std::move(item));
  return index;
}

Step fan_in_step(std::size_t consumers, Bytes tensor) {
  const auto sums = static_cast<std::int64_t>(consumers) - 1;
  Kernel k = memory_kernel("grad_accumulate", Pass::input_grad, MemoryClass::add, 3 * sums * tensor);
  k.launches = static_cast<std::int32_t>(sums);
  return compute_step(k);
}

}  // namespace

Step compute_step(const Kernel& kernel, Lane lane) {
  Step s;
  s.name = kernel.name;
  s.lane = lane;
  s.kernel = kernel;
  return s;
}

Step comm_step(const char* name, Lane lane, const CommOp& comm) {
  Step s;
  s.name = name;
  s.lane = lane;
  s.is_comm = true;
  s.comm = comm;
  return s;
}

Node LayerGraph::input(Bytes bytes) {
  Operation op;
  op.output = bytes;
  return add(std::move(op));
}

Node LayerGraph::add(Operation operation) {
  const auto self = static_cast<Node>(operations_.size());
  for (Node producer : operation.inputs) {
    CS_CHECK(producer >= 0 && producer < self, "operation {} reads {}, which is not before it", self, producer);
    operations_[static_cast<std::size_t>(producer)].consumers.push_back(self);
  }
  operations_.push_back(Entry{std::move(operation), false, {}});
  return self;
}

void LayerGraph::follow_routing(Node n) {
  Operation& op = operations_[static_cast<std::size_t>(n)].op;
  for (std::vector<Step>* steps : {&op.forward, &op.backward})
    for (Step& step : *steps)  // adding weight gradients up does not depend on rows
      step.kernel.routed = !step.is_comm && step.kernel.memory_class != MemoryClass::add;
}

void LayerGraph::keep(Node tensor, Node holder, const char* name, Dtype dtype, double element_ratio) {
  Entry& entry = operations_[static_cast<std::size_t>(tensor)];
  if (entry.kept) return;
  entry.kept = true;
  const Bytes bytes = Bytes::ceil(entry.op.output.as_double() * element_ratio);
  kept_.push_back({SavedTensor{name, entry.op.module, bytes, dtype, tensor != 0 && !entry.op.output_stays}, tensor,
                   holder, false, name});
}

void LayerGraph::keep_extra(Node holder, const char* name, Bytes bytes, Dtype dtype, bool recomputable) {
  if (bytes.count() == 0) return;
  kept_.push_back(
      {SavedTensor{name, operation(holder).module, bytes, dtype, recomputable}, holder, holder, true, name});
}

LayerProgram LayerGraph::finish(Node output, const FinishOptions& options) const {
  CS_CHECK(!operations_.empty(), "a layer graph needs an input");
  LayerProgram program;
  emit_forward(program);
  emit_backward(program);
  std::vector<Kept> ordered = kept_;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Kept& a, const Kept& b) { return a.producer < b.producer; });
  Bytes total{0};
  for (const Kept& k : ordered) {
    program.saved.push_back(k.tensor);
    total += k.tensor.bytes;
  }
  const Bytes peak = std::max(forward_peak(), backward_peak(output, options));
  program.workspace = std::max(Bytes{0}, peak - total);
  program.boundary = bytes(output);
  program.liveness = std::make_shared<const Liveness>(liveness(output));
  return program;
}

// Views read the tensor as long as somebody reads them.
Node LayerGraph::last_reader(Node n) const {
  Node last = -1;
  for (Node c : operations_[static_cast<std::size_t>(n)].consumers)
    last = std::max(last, operation(c).view ? std::max(c, last_reader(c)) : c);
  return last;
}

Liveness LayerGraph::liveness(Node output) const {
  Liveness l;
  l.output = output;
  for (const Entry& entry : operations_) {
    LivenessOperation o;
    o.module = entry.op.module;
    o.inputs = entry.op.inputs;
    o.last_reader = last_reader(static_cast<Node>(l.operations.size()));
    o.gradient = entry.op.output;
    if (!entry.op.view) o.output = entry.op.output;
    o.view = entry.op.view;
    o.forward_script = entry.op.forward_script;
    o.backward_script = entry.op.backward_script;
    o.forward_scratch = entry.op.forward_scratch;
    o.gradient_scratch = entry.op.gradient_scratch;
    o.weight_gradient = entry.op.weight_gradient;
    o.shares_gradient = entry.op.shares_gradient;
    for (const Step& s : entry.op.backward) {
      if (s.is_comm || s.kernel.pass != Pass::weight_grad) continue;
      o.has_weight_gradient = true;
      o.narrow_weight_gradient = o.narrow_weight_gradient || is_fp8(s.kernel.dtype);
    }
    o.exchanged = entry.op.module == Module::dispatch || entry.op.module == Module::expert_up ||
                  entry.op.module == Module::expert_activation || entry.op.module == Module::expert_down;
    l.operations.push_back(std::move(o));
  }
  for (const Kept& k : kept_) {
    const SavedTensor& t = k.tensor;
    l.kept.push_back({k.producer, k.holder, k.extra, k.name, t.module, t.bytes, t.dtype, t.recomputable});
  }
  std::stable_sort(l.kept.begin(), l.kept.end(),
                   [](const KeptTensor& a, const KeptTensor& b) { return a.producer < b.producer; });
  return l;
}

void LayerGraph::emit_forward(LayerProgram& program) const {
  std::vector<Indices> done(operations_.size());  // items after which the tensor of an operation is complete
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& op = operations_[i].op;
    Indices ready;
    for (Node n : op.inputs) merge(ready, done[static_cast<std::size_t>(n)]);
    for (Node n : op.forward_order) merge(ready, done[static_cast<std::size_t>(n)]);
    Indices detached;
    for (const Step& step : op.forward) {
      const std::uint16_t item = append(program.forward, step, op.module, ready);
      if (step.detached)
        detached.push_back(item);
      else
        ready = {item};
    }
    merge(ready, detached);
    done[i] = std::move(ready);
  }
}

// When branches on different lanes start with the output gradient alone (combine-backward beside a shared expert), an
// item without work stands for its arrival: an empty `after` would chain one branch behind the other.
void LayerGraph::emit_backward(LayerProgram& program) const {
  if (!emit_backward_groups(program, {})) return;
  program.backward.clear();
  Kernel arrival = memory_kernel("output_grad", Pass::input_grad, MemoryClass::copy, Bytes{0});
  arrival.launches = 0;
  append(program.backward, compute_step(arrival), Module::residual, {});
  emit_backward_groups(program, {0});
}

// True when some branch that waits for nothing but `start` follows an item of another lane.
bool LayerGraph::emit_backward_groups(LayerProgram& program, const std::vector<std::uint16_t>& start) const {
  bool branches = false;
  std::vector<Indices> done(operations_.size());  // items after which the gradients of the operation's inputs exist
  for (std::size_t r = operations_.size(); r-- > 0;) {
    const Entry& entry = operations_[r];
    Indices ready;
    for (Node n : entry.consumers) merge(ready, done[static_cast<std::size_t>(n)]);
    for (Node n : entry.op.backward_order) merge(ready, done[static_cast<std::size_t>(n)]);
    if (ready.empty()) ready = start;
    const bool first_of_branch = ready.empty() && !program.backward.empty() && !entry.op.backward.empty();
    if (first_of_branch && program.backward.back().lane != entry.op.backward.front().lane) branches = true;
    if (entry.consumers.size() > 1 && entry.op.gradient_fan_in && entry.op.output.count() > 0) {
      ready = {append(program.backward, fan_in_step(entry.consumers.size(), entry.op.output), Module::residual, ready)};
    }
    const Indices gradient = ready;
    Indices detached;
    for (const Step& step : entry.op.backward) {
      if (!step.is_comm && step.kernel.pass == Pass::weight_grad) {
        Indices after = gradient;
        merge(after, detached);
        append(program.backward, step, entry.op.module, std::move(after));
        continue;
      }
      const std::uint16_t item = append(program.backward, step, entry.op.module, step.detached ? gradient : ready);
      if (step.detached)
        detached.push_back(item);
      else
        ready = {item};
    }
    const bool has_weight_grad = !entry.op.backward.empty() && !entry.op.backward.back().is_comm &&
                                 entry.op.backward.back().kernel.pass == Pass::weight_grad;
    if (!has_weight_grad) merge(ready, detached);
    done[r] = std::move(ready);
  }
  return branches;
}

Bytes LayerGraph::forward_peak() const {
  Bytes peak{0}, live{0};
  for (std::size_t i = 1; i < operations_.size(); ++i) {
    const Entry& entry = operations_[i];
    for (const Kept& k : kept_) {
      if (k.producer == static_cast<Node>(i)) live += k.tensor.bytes;
    }
    if (!entry.kept && !entry.op.view) live += entry.op.output;
    peak = std::max(peak, live + entry.op.forward_scratch);
    for (Node n : entry.op.inputs) {
      const Entry& producer = operations_[static_cast<std::size_t>(n)];
      const bool last_use = producer.consumers.back() == static_cast<Node>(i);
      if (last_use && n > 0 && !producer.kept && !producer.op.view) live -= producer.op.output;
    }
  }
  return peak;
}

Bytes LayerGraph::backward_peak(Node output, const FinishOptions& options) const {
  Bytes live = bytes(output), peak{0};
  for (const Kept& k : kept_) live += k.tensor.bytes;
  std::vector<bool> has_gradient(operations_.size(), false);
  std::vector<Bytes> charged(operations_.size());  // memory that the gradient of a tensor owns
  has_gradient[static_cast<std::size_t>(output)] = true;
  if (!options.gradient_held) charged[static_cast<std::size_t>(output)] = bytes(output);
  for (std::size_t r = operations_.size(); r-- > 1;) {
    const Entry& entry = operations_[r];
    Bytes temporary = entry.op.gradient_scratch + entry.op.weight_gradient;
    for (Node n : entry.op.inputs) {
      const auto p = static_cast<std::size_t>(n);
      const Bytes size = operations_[p].op.output;
      if (has_gradient[p] && entry.op.view) continue;  // joined into the gradient that the first view's backward made
      if (has_gradient[p] && charged[p].count() > 0) {
        temporary += size;  // summed into the gradient that another consumer made
        continue;
      }
      if (has_gradient[p] && !entry.op.shares_gradient) {  // the first gradient was borrowed: the sum is a new tensor
        charged[p] = size;
        live += size;
        temporary += size;
        continue;
      }
      has_gradient[p] = true;
      if (entry.op.shares_gradient) {  // the longest-lived input, listed first, takes over the memory
        charged[p] = charged[r];
        charged[r] = Bytes{0};
      } else {
        charged[p] = size;
        live += size;
      }
    }
    peak = std::max(peak, live + temporary);
    if (options.first_gradients) live += entry.op.weight_gradient;
    live -= charged[r];
    for (const Kept& k : kept_) {
      if (k.holder == static_cast<Node>(r)) live -= k.tensor.bytes;
    }
  }
  return peak;
}

}  // namespace k3sim
