// Fresh random inputs on the device: splitmix64 of (seed, index), Box-Muller for normals. Never zeros: they hide
// unwritten outputs and draw less power than real data.
// Source: sim/base/rng.h (the same keyed scheme).
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

// value = mean + scale * N(0, 1)
struct Normal {
  float scale = 1.0f;
  float mean = 0.0f;
};

void fill_normal(bf16* data, std::size_t n, unsigned long long seed, Normal dist, cudaStream_t stream);
void fill_normal(float* data, std::size_t n, unsigned long long seed, Normal dist, cudaStream_t stream);

template <class T>
DeviceBuffer<T> random_buffer(std::size_t n, unsigned long long seed, Normal dist = {}) {
  DeviceBuffer<T> buffer(n);
  fill_normal(buffer.get(), n, seed, dist, nullptr);
  K3_CUDA(cudaGetLastError());
  K3_CUDA(cudaDeviceSynchronize());
  return buffer;
}

}  // namespace k3sim
