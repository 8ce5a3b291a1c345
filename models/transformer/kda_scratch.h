// Scratch of the chunked KDA core in the order in which FLA's host code asks for it, per token and head of dimension d
// with chunks of 64 tokens. At the backward peak 52 d bytes are alive: the cumulative gate, w, u, decayed q and k,
// chunk states and their gradients, dq, dk and dg twice in FP32, two FP32 dA. Source:
// fla/ops/kda/{chunk,chunk_fwd,chunk_bwd,chunk_intra,gate}.py (fla-org/flash-linear-attention); k3-facts 4.7.
#pragma once

#include "models/transformer/scratch_script.h"

namespace k3sim {

ScratchScript kda_forward_script(std::int64_t token_heads, std::int64_t d);
// Inputs in the order of the core: q, k, v, decay, beta.
ScratchScript kda_backward_script(std::int64_t token_heads, std::int64_t d);

}  // namespace k3sim
