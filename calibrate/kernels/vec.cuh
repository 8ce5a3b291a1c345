// Small device helpers shared by the memory-bound kernels: 16-byte vectors of eight bf16, block-wide sums.
// Source: 16-byte accesses per thread, coalesced across the warp.
#pragma once

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

struct alignas(16) Vec8 {
  bf16 v[8];
};

__device__ inline Vec8 load8(const bf16* p) {
  return *reinterpret_cast<const Vec8*>(p);
}
__device__ inline void store8(bf16* p, const Vec8& v) {
  *reinterpret_cast<Vec8*>(p) = v;
}
__device__ inline float f32(bf16 x) {
  return __bfloat162float(x);
}

// Sum over the block, the same value in every thread. blockDim.x is a multiple of 32 and at most 1024.
__device__ inline float block_sum(float x) {
  __shared__ float part[32];
  for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
  for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}

}  // namespace k3sim
