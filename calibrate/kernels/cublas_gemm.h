// One BF16 product through cublasGemmEx, the call that frameworks make for a linear layer without bias.
// Row-major terms as in lt_matmul.h; 32 MiB of workspace, FP32 accumulation, default algorithm.
// Source: cuBLAS documentation; PyTorch's CUDABlas for the settings.
#pragma once

#include "calibrate/kernels/lt_matmul.h"

namespace k3sim {

// D[m,n] = op(A) op(B) on the current device. Requires: BF16 in and out, no batch.
void cublas_gemm(const LtShape& shape, const bf16* a, const bf16* b, bf16* d, cudaStream_t stream);

}  // namespace k3sim
