// Allocations and frees of one layer and micro-batch, forward and backward, under a storage policy.
//
// Forward: an operation allocates its output (and what else it keeps); a tensor that backward does not need is freed
// after its last reader. Backward visits the operations in reverse: scratch and new gradients are allocated, gradients
// of several readers are summed in place where nobody else holds the sum, kept tensors go when their holder has run.
//   recomputed modules  their tensors are transient in forward and rebuilt, a whole run of the module at once, when the
//                       first holder of one of them runs backward
//   full                everything that is recomputed is rebuilt before the first operation of the layer's backward
//   split backward      kept inputs and output gradients of operations with weights wait for the weight-gradient pass
//   fp8, offload        at the end of forward kept tensors are copied to narrow ones (fp8) and those sent away
//   (offload)
// Source: PyTorch autograd (InputBuffer accumulates in place only into a tensor it owns), torch.utils.checkpoint;
// Megatron-LM core/tensor_parallel/random.py; zero-bubble weight-gradient store (arXiv:2401.10241); k3-facts 2.4.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/memory/storage_rules.h"
#include "models/transformer/liveness.h"

namespace k3sim {

enum class MemoryRole : std::uint8_t { kept, transient, gradient, workspace, weight_gradient };

struct EventTensor {
  const char* name = "";
  Module module = Module::residual;
  MemoryRole role = MemoryRole::transient;
  Bytes bytes{0};
  bool exchanged = false;  // rows received from other ranks: the size changes with routing
};

// Its size when a rank receives `row_factor` times the rows that it was made for.
inline Bytes size_of(const EventTensor& t, double row_factor) {
  return t.exchanged && row_factor != 1.0 ? Bytes::ceil(t.bytes.as_double() * row_factor) : t.bytes;
}

struct MemoryEvent {
  std::uint16_t tensor = 0;
  bool alloc = true;
};
using MemoryEvents = std::vector<MemoryEvent>;

// Tensors that cross the layer's border. The input is made by whoever runs before and freed here; the output is made
// here and freed by whoever reads it; likewise the gradients.
constexpr std::uint16_t kLayerInput = 0, kLayerOutput = 1, kOutputGradient = 2, kInputGradient = 3;

struct StoragePolicy {
  bool full = false;           // only the layer input is kept
  bool half_products = false;  // keeps attention outputs and every second matrix product, rebuilds the rest at once
  bool fp8 = false;            // two-byte kept tensors are stored as 1 x 128 tiles of E4M3
  bool offload = false;        // what is kept waits in host memory
  bool wide_inputs = false;    // FP8 layers keep their inputs in BF16 and quantise again in backward
  std::array<bool, kModules> modules{};
  std::vector<StorageRule> rules = {};  // by tensor name, over all of the above
};

// One saved tensor as policies see it.
struct StoredTensor {
  std::string_view name;
  Module module = Module::norm;
  Dtype dtype = Dtype::bf16;
  bool recomputable = true;
  bool layer_input = false;  // never dropped: replays start from it
};
TensorTreatment treatment_of(const StoragePolicy& policy, const StoredTensor& tensor);

struct PassEvents {
  MemoryEvents events;
  Bytes peak;               // above what was alive before the pass
  std::int64_t change = 0;  // alive after minus before
  int input_gradient = -1;  // the tensor that leaves as gradient of the layer's input; -1: none
};

// What the policy does with one tensor that backward needs.
struct KeptTreatment {
  const char* name = "";
  Bytes bytes;  // before the treatment
  TensorTreatment treatment;
};

struct LayerEvents {
  std::vector<EventTensor> tensors;
  std::vector<KeptTreatment> kept;
  PassEvents forward, backward, input_grad, weight_grad;
  std::vector<std::uint16_t> stored;  // with offload: what leaves after forward and returns before backward
  Bytes stored_bytes;
  Bytes remote_bytes;               // of stored_bytes: kept by another pipeline rank, not by the host
  std::vector<std::uint16_t> held;  // alive between forward and backward; what is stored is among them
};

LayerEvents layer_events(const Liveness& layer, const StoragePolicy& policy);

struct PassSize {
  Bytes peak;
  std::int64_t change = 0;
};
// Peak and change of a list of events. Requires: tensors of the list.
PassSize pass_size(const std::vector<EventTensor>& tensors, const MemoryEvents& events, double row_factor);
void measure(const std::vector<EventTensor>& tensors, PassEvents& pass);

// Bytes of a two-byte tensor stored as E4M3 tiles with one FP32 scale per 128 values.
inline Bytes fp8_tile_bytes(Bytes two_byte) {
  return Bytes::ceil(two_byte.as_double() * 0.5 * (1.0 + 4.0 / 128.0));
}

}  // namespace k3sim
