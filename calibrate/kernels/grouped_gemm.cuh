// Grouped GEMM over the local experts, own kernels on mma.sync: ragged rows, one weight matrix per expert.
//   forward       out[r, n]  = x[r, :] . w[g][n, :]          rows r of group g = offsets[g] .. offsets[g + 1] - 1
//   input grad    dx[r, k]   = sum_n dy[r, n] w[g][n, k]
//   weight grad   dw[g][n,k] = sum_r dy[r, n] x[r, k]        (a group without rows gives zeros)
// Requires: n and k are multiples of 128. Rows need no padding.
// Source: k3-facts.md section 3.10, hardware.md section 5.2.
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

struct GroupedShape {
  const int* offsets = nullptr;  // device, [groups + 1]
  int groups = 0;
  int rows = 0;      // offsets[groups]
  int n = 0, k = 0;  // of w[g][n, k]
};

void grouped_forward(const GroupedShape& s, const bf16* x, const bf16* w, bf16* out, cudaStream_t stream);
void grouped_input_grad(const GroupedShape& s, const bf16* dy, const bf16* w, bf16* dx, cudaStream_t stream);
void grouped_weight_grad(const GroupedShape& s, const bf16* dy, const bf16* x, bf16* dw, cudaStream_t stream);

}  // namespace k3sim
