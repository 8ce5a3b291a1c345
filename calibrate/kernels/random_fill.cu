// Random inputs; see the header.
// Source: splitmix64 finaliser (Steele, Lea, Flood 2014), Box-Muller.
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

__device__ unsigned long long mix(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T>
__global__ void normal_kernel(T* data, std::size_t n, unsigned long long seed, float scale, float mean) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const unsigned long long bits = mix(mix(seed) ^ i);
    const float u = (float(unsigned(bits)) + 0.5f) * 2.3283064e-10f;
    const float v = (float(unsigned(bits >> 32)) + 0.5f) * 2.3283064e-10f;
    data[i] = T(mean + scale * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));
  }
}

template <class T>
void launch(T* data, std::size_t n, unsigned long long seed, Normal d, cudaStream_t stream) {
  if (n > 0) normal_kernel<<<1024, 256, 0, stream>>>(data, n, seed, d.scale, d.mean);
}

}  // namespace

void fill_normal(bf16* data, std::size_t n, unsigned long long seed, Normal d, cudaStream_t stream) {
  launch(data, n, seed, d, stream);
}
void fill_normal(float* data, std::size_t n, unsigned long long seed, Normal d, cudaStream_t stream) {
  launch(data, n, seed, d, stream);
}

}  // namespace k3sim
