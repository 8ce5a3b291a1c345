// One matrix product planned by cuBLASLt, in row-major terms: D[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C.
//   cuBLASLt is column-major, so it computes D^T = op(B)^T op(A)^T on the same memory. The first algorithm of the
//   library's own heuristic is used, with 32 MiB of workspace, as frameworks do.
// Source: cuBLASLt documentation; FP8 needs A plain and B transposed and dimensions that are multiples of 16.
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

struct LtShape {
  long long m = 0, n = 0, k = 0;
  bool a_transposed = false;  // A is stored [k,m]
  bool b_transposed = false;  // B is stored [n,k]
  int batch = 1;
  bool b_shared = false;  // one B for the whole batch
  cudaDataType_t in = CUDA_R_16BF;
  cudaDataType_t out = CUDA_R_16BF;
  bool row_scales = false;  // FP8: one scale per row of A and per column of B instead of one per tensor
};

class LtMatmul {
 public:
  // a_scale, b_scale: device pointers for FP8, else null.
  explicit LtMatmul(const LtShape& shape, const float* a_scale = nullptr, const float* b_scale = nullptr);
  ~LtMatmul();
  LtMatmul(const LtMatmul&) = delete;
  LtMatmul& operator=(const LtMatmul&) = delete;
  void run(const void* a, const void* b, const void* c, void* d, cudaStream_t stream, float alpha = 1,
           float beta = 0) const;

 private:
  void set_scales(const float* a_scale, const float* b_scale, bool rows);
  cublasLtMatmulDesc_t op_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algo_{};
};

// Relative error of 512 sampled elements of D against double precision.
double sampled_matmul_error(const LtShape& shape, const bf16* a, const bf16* b, const bf16* d, unsigned long long seed);
// The same for e4m3 operands of unit scale (one byte per element).
double sampled_matmul_error_fp8(const LtShape& shape, const void* a, const void* b, const bf16* d,
                                unsigned long long seed);

}  // namespace k3sim
