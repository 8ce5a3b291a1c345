// Row movement of the LatentMoE path: gather, weighted combine, and their gradients.
//   x_rows[i] = x[token_of[i]]                     (gather: i runs over the grouped rows)
//   y[t] = sum_k weight[t,k] * rows[row_of[t,k]]   (combine, FP32 sum)
//   gradient of the combine: drows[row_of[t,k]] = weight[t,k] * dy[t];  dweight[t,k] = dy[t] . rows[row_of[t,k]]
// Source: k3-facts.md section 1.2 (routing weight multiplies the expert output, FP32 sum).
#pragma once

#include "calibrate/kernels/vec.cuh"

namespace k3sim {

struct Routing {
  const int* token_of;  // [rows] source token of every grouped row
  const int* row_of;    // [tokens, topk] grouped row of every entry
  const float* weight;  // [tokens, topk]
  int tokens = 0, topk = 0;
  int rows() const { return tokens * topk; }
};

void gather_rows(const bf16* x, const int* token_of, bf16* out, int rows, int width, cudaStream_t stream);
// weight may be null (plain sum: the gradient of gather).
void combine_rows(const bf16* rows, const Routing& r, const float* weight, bf16* y, int width, cudaStream_t stream);
void combine_rows_backward(const bf16* rows, const bf16* dy, const Routing& r, bf16* drows, float* dweight, int width,
                           cudaStream_t stream);

}  // namespace k3sim
