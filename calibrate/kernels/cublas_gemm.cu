// cublasGemmEx with one handle per device and host thread; see the header.
// Source: cuBLAS documentation.
#include "calibrate/kernels/cublas_gemm.h"

#include <cublas_v2.h>

#include <map>

namespace k3sim {

namespace {

struct Handle {
  cublasHandle_t handle = nullptr;
  DeviceBuffer<unsigned char> workspace{32u << 20};
  Handle() {
    K3_CUBLAS(cublasCreate(&handle));
    K3_CUBLAS(cublasSetWorkspace(handle, workspace.get(), workspace.bytes()));
  }
};

Handle& current() {
  thread_local std::map<int, Handle*> handles;  // live as long as the program
  int device = 0;
  K3_CUDA(cudaGetDevice(&device));
  Handle*& slot = handles[device];
  if (slot == nullptr) slot = new Handle;
  return *slot;
}

}  // namespace

void cublas_gemm(const LtShape& s, const bf16* a, const bf16* b, bf16* d, cudaStream_t stream) {
  Handle& h = current();
  const float alpha = 1, beta = 0;
  K3_CUBLAS(cublasSetStream(h.handle, stream));
  K3_CUBLAS(cublasSetWorkspace(h.handle, h.workspace.get(), h.workspace.bytes()));  // setting a stream resets it
  K3_CUBLAS(cublasGemmEx(h.handle, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                         s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, int(s.n), int(s.m), int(s.k), &alpha, b,
                         CUDA_R_16BF, int(s.b_transposed ? s.k : s.n), a, CUDA_R_16BF, int(s.a_transposed ? s.m : s.k),
                         &beta, d, CUDA_R_16BF, int(s.n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
}

}  // namespace k3sim
