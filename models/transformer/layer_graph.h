// A small data-flow graph of one layer from which the LayerProgram is derived: operations in forward order, each with
// its forward and backward steps, the tensor it produces and the tensors it keeps.
//
// finish() lists forward steps in order and backward groups in reverse order, turns data edges into `after` lists, adds
// the gradient-accumulation kernel of a tensor with several consumers, and walks both passes to find the workspace:
//   workspace = max over time(kept + transient tensors + gradients + kernel scratch) - all kept tensors.
// A kept tensor is released when its holder (the first operation that needs it in backward) has run backward.
// Source: PyTorch autograd semantics (reverse order, accumulation of fan-out gradients); checked against the
// measured peaks of whole modules (tests/golden/models/transformer).
#pragma once

#include <vector>

#include "models/transformer/program.h"
#include "models/transformer/scratch_script.h"

namespace k3sim {

using Node = int;  // an operation, and the tensor that it produces

// One kernel or communication inside an operation.
struct Step {
  const char* name = "";
  Lane lane = Lane::compute;
  bool is_comm = false;
  bool detached = false;  // later steps of the operation do not wait for it: a re-gather (only the weight gradient
                          // does) or a ring exchange beside the core (only the operation's readers do)
  Kernel kernel;
  CommOp comm;
};
Step compute_step(const Kernel& kernel, Lane lane = Lane::compute);
Step comm_step(const char* name, Lane lane, const CommOp& comm);

struct Operation {
  Module module = Module::norm;
  std::vector<Node> inputs;   // producers of the data it reads
  Bytes output{0};            // bytes of the tensor it produces
  Bytes gradient_scratch{0};  // transient bytes of its backward beyond input and output gradients
  Bytes weight_gradient{0};   // weight gradients made as new tensors (eager stacks), before they are accumulated
  Bytes forward_scratch{0};
  std::vector<Step> forward;
  std::vector<Step> backward;       // input-gradient steps first, then weight-gradient steps
  std::vector<Node> forward_order;  // operations that must have run before, without a data edge
  std::vector<Node> backward_order;
  // Order of its memory requests; empty: output, then scratch (forward), scratch, then gradients (backward).
  ScratchScript forward_script, backward_script;
  bool view = false;             // its output lies in its input's memory; only its gradient is a tensor of its own
  bool shares_gradient = false;  // an addition: every input receives the output gradient itself, without a copy
  bool output_stays = false;     // recompute policies keep its output: replaying starts and ends inside the module
  bool gradient_fan_in = true;   // false: gradients of several consumers are summed inside their own kernels
};

// How the surroundings of a layer bear on its workspace.
struct FinishOptions {
  bool gradient_held = false;    // somebody else keeps the output's gradient alive during the whole backward
  bool first_gradients = false;  // new weight gradients stay (first micro-batch) instead of being added and dropped
};

class LayerGraph {
 public:
  // The tensor that enters the layer. Its gradient leaves the layer.
  Node input(Bytes bytes);
  Node add(Operation operation);
  // Keeps the tensor of `tensor` for the backward of `holder`; a second call for the same tensor changes nothing.
  // `element_ratio` scales the bytes when it is kept in a narrower type.
  void keep(Node tensor, Node holder, const char* name, Dtype dtype = Dtype::bf16, double element_ratio = 1.0);
  // Keeps something that is no operation's output: a mask, softmax statistics, an FP32 copy.
  void keep_extra(Node holder, const char* name, Bytes bytes, Dtype dtype = Dtype::bf16, bool recomputable = true);
  // Makes the backward of `op` wait for that of `first` (which comes later in forward) without a data edge.
  void order_backward(Node op, Node first) {
    operations_[static_cast<std::size_t>(op)].op.backward_order.push_back(first);
  }
  // The operation's rows follow the routing: its kernels are timed again for every draw.
  void follow_routing(Node n);
  const Operation& operation(Node n) const { return operations_[static_cast<std::size_t>(n)].op; }
  Bytes bytes(Node n) const { return operation(n).output; }
  LayerProgram finish(Node output, const FinishOptions& options = {}) const;
  // The gradients of this tensor's readers are summed (or joined) inside their own kernels.
  void no_fan_in(Node n) { operations_[static_cast<std::size_t>(n)].op.gradient_fan_in = false; }

 private:
  struct Entry {
    Operation op;
    bool kept = false;
    std::vector<Node> consumers;
  };
  struct Kept {
    SavedTensor tensor;
    Node producer = 0, holder = 0;
    bool extra = false;  // no operation's output
    const char* name = "";
  };
  void emit_forward(LayerProgram& program) const;
  void emit_backward(LayerProgram& program) const;
  bool emit_backward_groups(LayerProgram& program, const std::vector<std::uint16_t>& start) const;
  Bytes forward_peak() const;
  Bytes backward_peak(Node output, const FinishOptions& options) const;
  Liveness liveness(Node output) const;
  Node last_reader(Node n) const;

  std::vector<Entry> operations_;
  std::vector<Kept> kept_;
};

}  // namespace k3sim
