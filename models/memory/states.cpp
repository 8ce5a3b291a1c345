// Bytes of weights, gradients and optimizer states under a ZeRO stage. Source: Rajbhandari et al. 2020; k3-facts 2.3.
#include "models/memory/states.h"

namespace k3sim {

namespace {

std::int64_t sharded(const ParameterCount& p, const StateShape& s) {
  return (p.dense + s.dense_shards - 1) / s.dense_shards + (p.experts + s.expert_shards - 1) / s.expert_shards;
}

}  // namespace

Bytes gathered_weights(const ParameterCount& p, const StateShape& s) {
  return (p.dense + (s.expert_shards > 1 ? p.experts : 0)) * Bytes(2);
}

Bytes whole_gradients(const ParameterCount& p, const StateShape& s, const OptimizerConfig& o) {
  return p.dense * s.reduce_bytes + p.experts * (s.expert_shards > 1 ? s.reduce_bytes : o.gradient_bytes);
}

StateBytes state_bytes(const StateShape& s, const OptimizerConfig& o) {
  const std::int64_t all = s.parameters.dense + s.parameters.experts;
  const std::int64_t shard = sharded(s.parameters, s);
  const std::int64_t layer = s.largest_layer.dense + s.largest_layer.experts;
  StateBytes b;
  b.weights = (o.zero >= 3 ? shard : all) * o.parameter_bytes;
  b.gradients = (o.zero >= 2 ? shard : all) * o.gradient_bytes;
  if (s.gathered)
    b.weights += gathered_weights(s.parameters, s), b.gradients = whole_gradients(s.parameters, s, o);
  else if (o.zero >= 3)
    b.weights += 2 * layer * o.parameter_bytes, b.gradients += layer * o.gradient_bytes;
  const Bytes buffers = 2 * (s.largest_chunk.dense + s.largest_chunk.experts) * o.gradient_bytes;
  if (o.gradient_shards == "cpu") {
    b.gradients = buffers;
    b.host_gradients = shard * o.gradient_bytes;
  } else if (s.by_chunk) {
    b.gradients += buffers;
  }
  const Bytes states = o.name == "none" ? Bytes(0) : (o.zero >= 1 ? shard : all) * o.state_bytes;
  (o.states == "cpu" ? b.host_optimizer : b.optimizer) = states;
  return b;
}

}  // namespace k3sim
