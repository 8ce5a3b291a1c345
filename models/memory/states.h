// Bytes of weights, gradients and optimizer states that one rank holds.
//   zero 0: all of each; 1: optimizer states / shards; 2: gradients too; 3: weights too (or pipeline FSDP, see
//   StateShape)
// Dense parameters are sharded over dp x cp, routed experts over expert-dp (k3-facts, requirement "expert-DP is not
// DP"). Gradient shards in CPU memory (pipeline ZeRO-2, k3-facts 2.3): the GPU keeps two model-chunk-sized buffers.
// Source: Rajbhandari et al. 2020 (ZeRO), Megatron-LM distributed optimizer.
#pragma once

#include "models/config/scenario.h"
#include "models/transformer/layers.h"

namespace k3sim {

struct StateBytes {
  Bytes weights, gradients, optimizer;   // on the GPU
  Bytes host_optimizer, host_gradients;  // in host memory
  Bytes gpu() const { return weights + gradients + optimizer; }
};

struct StateShape {
  ParameterCount parameters;     // of all chunks of the rank
  ParameterCount largest_chunk;  // for chunk-sized gradient buffers
  ParameterCount largest_layer;  // zero 3 gathers two layers at a time
  std::int64_t dense_shards = 1, expert_shards = 1;
  // Pipeline FSDP (zero 3 without reshard): parameters stay gathered over the step and whole gradients are summed in
  // the reduction's precision until the last micro-batch; experts that nobody shares stay outside FSDP.
  bool gathered = false;
  Bytes reduce_bytes{4};
  bool by_chunk = false;  // zero 2 with several chunks: two chunk-sized buffers beside the shards
};

// Pipeline FSDP: bytes of gathered BF16 parameters and of whole gradients beside the shards.
Bytes gathered_weights(const ParameterCount& parameters, const StateShape& shape);
Bytes whole_gradients(const ParameterCount& parameters, const StateShape& shape, const OptimizerConfig& optimizer);

StateBytes state_bytes(const StateShape& shape, const OptimizerConfig& optimizer);

}  // namespace k3sim
