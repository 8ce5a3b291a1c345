// What the walk over a rank's schedule (memory_log_walk.h) reports to: either the counting walk of stage_memory or the
// request log of memory_log. A buffer that changes hands between layers, stages or passes is a MemoryHandle.
// Source: engine-design section 10.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/build/chunks.h"
#include "models/memory/layer_events.h"
#include "models/schedule/action.h"
#include "sim/mem/request_log.h"

namespace k3sim {

enum class MemoryCategory : std::uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  activation_gradients,
  workspace,
  weight_gradients,
  gathered,
  exchange,
  remote_pool
};
constexpr int kMemoryCategories = 10;
const char* to_string(MemoryCategory c);

// Which operation of the step a buffer belongs to.
struct MemoryPlace {
  const char* name = "";  // static: tensor or buffer
  std::int16_t stage = -1;
  std::int16_t part = -1;  // of the stage's chunk
  std::int32_t microbatch = -1;
  ActionKind pass = ActionKind::kIdle;
};

struct MemoryHandle {
  Bytes bytes{0};
  MemoryId id = 0;
};

enum class LayerPass : std::uint8_t { forward, backward, input_grad, weight_grad };
inline const PassEvents& events_of(const LayerEvents& layer, LayerPass pass) {
  return pass == LayerPass::forward      ? layer.forward
         : pass == LayerPass::backward   ? layer.backward
         : pass == LayerPass::input_grad ? layer.input_grad
                                         : layer.weight_grad;
}

// Tensors of one layer and micro-batch, by their number in LayerEvents (filled by the sink that needs them).
struct LayerSlot {
  std::vector<MemoryId> ids;
};

struct LayerCall {
  const LayerEvents& layer;
  LayerPass pass;
  LayerSlot& slot;
  MemoryHandle incoming;  // layer input, or gradient of its output
  MemoryPlace place;
  double row_factor = 1.0;  // rows received from other ranks relative to those that the events were made for
};

struct Lending {
  bool out = true;
  bool to_host = false;      // else to another pipeline rank
  bool stored_away = false;  // what the policy sends away has left already
  bool moves(const LayerEvents& layer, std::uint16_t tensor) const {
    return !stored_away || std::find(layer.stored.begin(), layer.stored.end(), tensor) == layer.stored.end();
  }
};

class MemorySink {
 public:
  virtual ~MemorySink() = default;
  virtual MemoryHandle alloc(Bytes bytes, MemoryCategory category, const MemoryPlace& place) = 0;
  virtual void free(const MemoryHandle& handle) = 0;
  // Returns the layer's output, or the gradient of its input (0 bytes: none).
  virtual MemoryHandle run(const LayerCall& call) = 0;
  // Kept tensors that leave for host memory or another rank (out) or come back.
  virtual void store(const LayerEvents& layer, LayerSlot& slot, bool out, const MemoryPlace& place,
                     double row_factor) = 0;
  // Everything that a layer holds for its backward leaves as a whole (schedule actions offload and onload), or comes
  // back.
  virtual void lend(const LayerEvents& layer, LayerSlot& slot, const Lending& how, const MemoryPlace& place) = 0;
  virtual void action_done(const Action& action) = 0;
};

}  // namespace k3sim
