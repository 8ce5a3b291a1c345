// Device memory owned by a scope, and the number formats that the kernels read.
// Source: plain cudaMalloc on purpose (no managed memory).
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "calibrate/kernels/cuda_check.h"

namespace k3sim {

using bf16 = __nv_bfloat16;

template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t n) : n_(n) {
    if (n > 0) K3_CUDA(cudaMalloc(&data_, n * sizeof(T)));
  }
  DeviceBuffer(DeviceBuffer&& o) noexcept : data_(std::exchange(o.data_, nullptr)), n_(std::exchange(o.n_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(n_, o.n_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  T* get() const { return data_; }
  std::size_t size() const { return n_; }
  std::size_t bytes() const { return n_ * sizeof(T); }
  void zero() { K3_CUDA(cudaMemset(data_, 0, bytes())); }
  // 0xff is NaN in every floating format used here: an output that is not written never passes a check.
  void poison() { K3_CUDA(cudaMemset(data_, 0xff, bytes())); }

  std::vector<T> download() const {
    std::vector<T> host(n_);
    K3_CUDA(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDefault));
    return host;
  }
  void upload(const std::vector<T>& host) {
    K3_CUDA(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyDefault));
  }

 private:
  T* data_ = nullptr;
  std::size_t n_ = 0;
};

}  // namespace k3sim
