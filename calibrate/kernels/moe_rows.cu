// Gather and combine kernels: one block per row or token, 16-byte vectors.
// Source: see the header.
#include "calibrate/kernels/moe_rows.cuh"

namespace k3sim {

namespace {

__global__ void gather_kernel(const bf16* x, const int* token_of, bf16* out, int width8) {
  const std::size_t from = std::size_t(token_of[blockIdx.x]) * width8, to = std::size_t(blockIdx.x) * width8;
  for (int at = threadIdx.x; at < width8; at += blockDim.x) store8(out + (to + at) * 8, load8(x + (from + at) * 8));
}

__global__ void combine_kernel(const bf16* rows, const int* row_of, const float* weight, bf16* y, int topk,
                               int width8) {
  const std::size_t token = blockIdx.x;
  for (int at = threadIdx.x; at < width8; at += blockDim.x) {
    float sum[8] = {};
#pragma unroll 4
    for (int k = 0; k < topk; ++k) {
      const float w = weight == nullptr ? 1.0f : weight[token * topk + k];
      const Vec8 v = load8(rows + (std::size_t(row_of[token * topk + k]) * width8 + at) * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += w * f32(v.v[j]);
    }
    Vec8 o;
#pragma unroll
    for (int j = 0; j < 8; ++j) o.v[j] = __float2bfloat16(sum[j]);
    store8(y + (token * width8 + at) * 8, o);
  }
}

__global__ void combine_backward_kernel(const bf16* rows, const bf16* dy, const int* row_of, const float* weight,
                                        bf16* drows, float* dweight, int topk, int width8) {
  const std::size_t entry = blockIdx.x, row = row_of[entry], token = entry / topk;
  const float w = weight[entry];
  float dot = 0;
  for (int at = threadIdx.x; at < width8; at += blockDim.x) {
    const Vec8 v = load8(rows + (row * width8 + at) * 8), d = load8(dy + (token * width8 + at) * 8);
    Vec8 o;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      dot += f32(v.v[j]) * f32(d.v[j]);
      o.v[j] = __float2bfloat16(w * f32(d.v[j]));
    }
    store8(drows + (row * width8 + at) * 8, o);
  }
  dot = block_sum(dot);
  if (threadIdx.x == 0) dweight[entry] = dot;
}

}  // namespace

void gather_rows(const bf16* x, const int* token_of, bf16* out, int rows, int width, cudaStream_t stream) {
  gather_kernel<<<rows, 224, 0, stream>>>(x, token_of, out, width / 8);
}

void combine_rows(const bf16* rows, const Routing& r, const float* weight, bf16* y, int width, cudaStream_t stream) {
  combine_kernel<<<r.tokens, 224, 0, stream>>>(rows, r.row_of, weight, y, r.topk, width / 8);
}

void combine_rows_backward(const bf16* rows, const bf16* dy, const Routing& r, bf16* drows, float* dweight, int width,
                           cudaStream_t stream) {
  combine_backward_kernel<<<r.rows(), 224, 0, stream>>>(rows, dy, r.row_of, r.weight, drows, dweight, r.topk,
                                                        width / 8);
}

}  // namespace k3sim
