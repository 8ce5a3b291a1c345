// Kimi Delta Attention, chunked core, own CUDA. Per head, with state S (128 x 128), a_t = exp(g_t) per key channel:
//   S_t = (I - b_t k_t k_t^T) Diag(a_t) S_{t-1} + b_t k_t v_t^T,   o_t = scale * S_t^T q_t
// Chunks of 16 tokens. With G the decay summed inside the chunk and D = exp(G_last):
//   q~ = scale q e^G, k~ = k e^G, k^ = k e^-G, kb = k e^(G_last - G), A = strict lower(k~ k^T), P = lower(q~ k^T),
//   T = (I + b A)^-1, U = T b (V - k~ S), O = q~ S + P U, S' = D S + kb^T U.
// Backward, for R = T^T dU with dU = P^T dO + kb dS':  dV = b R, dS = D dS' + q~^T dO - k~^T dV, dP = lower(dO U^T),
//   dA = -b strict(R U^T), db = R.U / b, and the chain rule through q~, k~, k^, kb.
// "Prepare" runs over all chunks at once; the scans run one block per sequence and head, their eight warps own 16 value
// columns each; "local" turns the states into input gradients, again over all chunks at once.
// Source: k3-facts.md sections 4.1, 4.2; derivation above. Requires: head size 128, g in [-5, 0], sequences a multiple
// of 16 tokens. L2 normalisation and gate activation are outside.
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

constexpr int kKdaHead = 128, kKdaChunk = 16;

struct KdaShape {
  int sequences = 1, length = 0, heads = 0;  // length: tokens per sequence
  int tokens() const { return sequences * length; }
  int chunks() const { return tokens() / kKdaChunk; }
  std::size_t elements() const { return std::size_t(tokens()) * heads * kKdaHead; }
};

// Inputs and outputs are [token][head][128], beta [token][head].
struct KdaInputs {
  const bf16 *q, *k, *v, *g;
  const float* beta;
};

struct KdaGradients {
  const bf16* dout;
  bf16 *dq, *dk, *dv;
  float *dg, *dbeta;
};

struct KdaWorkspace {
  DeviceBuffer<unsigned char> prepared;  // per chunk and head: the operands above
  DeviceBuffer<bf16> states, dstates;    // S at the start, dS at the end of every chunk, [value][key]
  DeviceBuffer<bf16> u, r;               // [token][head][128]
  KdaWorkspace(const KdaShape& s, bool with_backward);
};

// keep: also writes states and u, which the backward pass reads.
void kda_forward(const KdaShape& s, const KdaInputs& in, KdaWorkspace& w, bf16* out, bool keep, cudaStream_t stream);
void kda_backward(const KdaShape& s, const KdaInputs& in, KdaWorkspace& w, const KdaGradients& grad,
                  cudaStream_t stream);

// One chunk and head of the prepared operands, as it lies in memory.
constexpr int kKdaPitch = kKdaHead + 8, kKdaSmallPitch = kKdaChunk + 8;
struct KdaPrepared {
  bf16 q[kKdaChunk][kKdaPitch];       // q~
  bf16 k[kKdaChunk][kKdaPitch];       // k~
  bf16 kb[kKdaChunk][kKdaPitch];      // kb
  bf16 t[kKdaChunk][kKdaSmallPitch];  // T
  bf16 p[kKdaChunk][kKdaSmallPitch];  // P
  float decay[kKdaHead];              // D
  float beta[kKdaChunk];
};
static_assert(sizeof(KdaPrepared) % 16 == 0);

}  // namespace k3sim
