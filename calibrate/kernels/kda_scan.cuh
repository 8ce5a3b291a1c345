// What the two KDA scans share: walking over the chunks of one sequence and head, the three-stage input pipeline, and
// the register layout of a warp's 16 x 128 slice of the transposed state. Source: kda_core.cuh.
#pragma once

#include "calibrate/kernels/kda_core.cuh"
#include "calibrate/kernels/mma.cuh"

namespace k3sim {

constexpr int kKdaStages = 3;

struct KdaStage {
  KdaPrepared op;
  bf16 x[kKdaChunk][kKdaPitch];    // v in the forward scan, dO in the backward scan
  bf16 out[kKdaChunk][kKdaPitch];  // results on their way out, each warp its own columns
};

struct KdaWalk {
  int heads, head, first, count;
  bool reverse;
  __device__ KdaWalk(const KdaShape& s, int block, bool backwards = false)
      : heads(s.heads),
        head(block % s.heads),
        first(block / s.heads * (s.length / kKdaChunk)),
        count(s.length / kKdaChunk),
        reverse(backwards) {}
  __device__ int chunk(int step) const { return step >= count ? -1 : first + (reverse ? count - 1 - step : step); }
  __device__ std::size_t state_offset(int c) const { return (std::size_t(c) * heads + head) * kKdaHead * kKdaHead; }
  __device__ std::size_t row_offset(int c, int token) const {
    return ((std::size_t(c) * kKdaChunk + token) * heads + head) * kKdaHead;
  }

  // Starts copying chunk c into stage step % kKdaStages; an empty group beyond the end keeps the count right.
  __device__ void fetch(KdaStage* stages, int step, int c, const KdaPrepared* prepared, const bf16* x) const {
    if (c >= 0) {
      KdaStage& st = stages[step % kKdaStages];
      const auto* from = reinterpret_cast<const unsigned char*>(prepared + std::size_t(c) * heads + head);
      auto* to = reinterpret_cast<unsigned char*>(&st.op);
      for (unsigned i = threadIdx.x * 16; i < sizeof(KdaPrepared); i += blockDim.x * 16)
        copy_async16(to + i, from + i, true);
      for (int i = threadIdx.x; i < kKdaChunk * 16; i += blockDim.x)
        copy_async16(&st.x[i / 16][i % 16 * 8], x + row_offset(c, i / 16) + i % 16 * 8, true);
    }
    copy_commit();
  }

  // Accumulators [value][token] of this warp's 16 value columns to rows [token][head][128].
  __device__ void store_rows(KdaStage& st, int v0, const float (&acc)[2][4], int c, bf16* out) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        st.out[n * 8 + lane % 4 * 2 + e % 2][v0 + lane / 4 + e / 2 * 8] = __float2bfloat16(acc[n][e]);
    __syncwarp();
    const int token = lane / 2, part = v0 + lane % 2 * 8;
    store8(out + row_offset(c, token) + part, load8(&st.out[token][part]));
    __syncwarp();
  }
};

// f(n, e, value row, token) for every element of a [16 values][16 tokens] accumulator pair.
template <class F>
__device__ inline void for_each_element(int v0, F f) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) f(n, e, v0 + lane / 4 + e / 2 * 8, n * 8 + lane % 4 * 2 + e % 2);
}

__device__ inline void pair_fragment(const float (&x)[2][4], std::uint32_t (&a)[4]) {
  a[0] = pack2(x[0][0], x[0][1]), a[1] = pack2(x[0][2], x[0][3]);
  a[2] = pack2(x[1][0], x[1][1]), a[3] = pack2(x[1][2], x[1][3]);
}

// A fragment of the state for keys 16 kk .. 16 kk + 15.
__device__ inline void state_fragment(const float (&s)[16][4], int kk, std::uint32_t (&a)[4]) {
  a[0] = pack2(s[2 * kk][0], s[2 * kk][1]), a[1] = pack2(s[2 * kk][2], s[2 * kk][3]);
  a[2] = pack2(s[2 * kk + 1][0], s[2 * kk + 1][1]), a[3] = pack2(s[2 * kk + 1][2], s[2 * kk + 1][3]);
}

__device__ inline void decay_state(float (&s)[16][4], const float* decay) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const float2 d = *reinterpret_cast<const float2*>(decay + n * 8 + lane % 4 * 2);
    s[n][0] *= d.x, s[n][1] *= d.y, s[n][2] *= d.x, s[n][3] *= d.y;
  }
}

// [value][key] in memory.
__device__ inline void store_state(const float (&s)[16][4], bf16* to, int v0) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 16; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<std::uint32_t*>(to + (v0 + lane / 4 + half * 8) * kKdaHead + n * 8 + lane % 4 * 2) =
          pack2(s[n][2 * half], s[n][2 * half + 1]);
}

}  // namespace k3sim
