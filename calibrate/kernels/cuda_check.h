// Every CUDA, cuBLASLt and NCCL call is checked; a failure throws with the call's text, so that a family is skipped
// with the exact reason and the others still run. Source: style notes (errors are values or exceptions, never exit
// codes ignored).
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "calibrate/harness/concat.h"

namespace k3sim {

class CudaFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown when a kernel's result differs from the double-precision reference: its family reports nothing.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw CudaFailure(concat(call, ": ", cudaGetErrorString(status)));
}

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaFailure(concat(call, ": cuBLASLt status ", int(status)));
}

}  // namespace k3sim

#define K3_CUDA(call) ::k3sim::check_cuda((call), #call)
#define K3_CUBLAS(call) ::k3sim::check_cublas((call), #call)
