// Which tensors of a layer live how long: what LayerGraph knows beyond the item lists of the LayerProgram.
// models/memory turns it into allocations and frees for a recompute policy. Node 0 is the tensor that enters the layer
// (its owner is the layer before); operation i produces tensor i. Source: PyTorch autograd semantics, as in
// layer_graph.h.
#pragma once

#include <vector>

#include "models/transformer/program.h"
#include "models/transformer/scratch_script.h"

namespace k3sim {

struct LivenessOperation {
  Module module = Module::norm;
  std::vector<int> inputs;
  int last_reader = -1;  // last operation that reads the tensor, or a view of it, in forward; -1: nobody in the layer
  Bytes output{0}, gradient{0};  // the tensor that it makes (a view: none) and its gradient
  Bytes forward_scratch{0}, gradient_scratch{0}, weight_gradient{0};
  ScratchScript forward_script, backward_script;  // order of its requests; empty: the usual one
  bool view = false;                              // of its first input
  bool shares_gradient = false;                   // its inputs receive the output gradient itself
  bool has_weight_gradient = false;               // a split backward keeps its kept input and output gradient for later
  // That product is in FP8: what waits for it is the output gradient as it was quantised for the input gradient.
  bool narrow_weight_gradient = false;
  bool exchanged = false;  // moved by the expert dispatcher: the rows change from micro-batch to micro-batch
};

// A tensor kept for the backward of `holder` (released when the holder has run backward).
struct KeptTensor {
  int producer = 0;  // whose output it is; with `extra` something the holder makes besides its output
  int holder = 0;
  bool extra = false;
  const char* name = "";
  Module module = Module::norm;
  Bytes bytes{0};  // as kept; smaller than the output when it is kept in a narrower type
  Dtype dtype = Dtype::bf16;
  bool recomputable = true;
};

struct Liveness {
  std::vector<LivenessOperation> operations;
  std::vector<KeptTensor> kept;  // by producer
  int output = 0;                // the tensor that leaves the layer
};

}  // namespace k3sim
