// Causal softmax attention with MLA head sizes (192 for q and k, 128 for v), own CUDA on mma.sync.
//   forward: 128 query rows per block, key blocks of 64, running softmax; keeps L = max + log sum per row.
//   backward: one block per 64 keys walks over the query blocks: P = exp(S - L), dV += P^T dO, dS = P (dO V^T - delta),
//   dK += dS^T Q, dQ += dS K (FP32 atomics), delta = rowsum(dO * O).
// Layout [batch][head][token][width]. Requires: tokens a multiple of 128.
// Source: FlashAttention-2 (Dao 2023); k3-facts.md sections 1.2 (MLA sizes), 4.8.
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

constexpr int kQkWidth = 192, kVWidth = 128;

struct AttentionShape {
  int batch_heads = 0, tokens = 0;
  float scale = 0.0721688f;  // 192^-0.5
};

struct AttentionTensors {
  const bf16 *q, *k, *v;
  bf16* out;
  float* lse;  // [batch_heads][tokens]
};

struct AttentionGradients {
  const bf16* dout;
  float* delta;  // scratch, [batch_heads][tokens]
  float* dq;     // FP32, accumulated; the launch clears it
  bf16 *dk, *dv;
};

void attention_forward(const AttentionShape& s, const AttentionTensors& t, cudaStream_t stream);
void attention_backward(const AttentionShape& s, const AttentionTensors& t, const AttentionGradients& g,
                        cudaStream_t stream);

}  // namespace k3sim
