// Copies between a GPU and the memory of its server on the copy engines.
//   on an empty network: bytes / host link, the rate with all GPUs of the server busy both ways
//   as flows: alone at the rate of one GPU in one direction; the links of the server make others wait
// Source: hardware notes 2.1 (PCIe and memory shared by the GPUs), 4.1 (rates).
#pragma once

#include "models/build/step_emitter.h"

namespace k3sim {

Traffic host_copy_traffic(const Machine& machine, Bytes bytes, bool to_gpu);
TaskId add_host_copy(RankEmitter& emitter, const Machine& machine, Bytes bytes, bool to_gpu, std::uint32_t label);

}  // namespace k3sim
