// Causal attention forward: eight warps of 16 query rows; K and V blocks double-buffered through cp.async.
// Source: attention_core.cuh.
#include "calibrate/kernels/attention_core.cuh"
#include "calibrate/kernels/mma.cuh"

namespace k3sim {

namespace {

constexpr int kRows = 128, kKeys = 64, kThreads = 256;
constexpr int kQkPitch = kQkWidth + 8, kVPitch = kVWidth + 8;

struct Shared {
  bf16 q[kRows][kQkPitch];
  bf16 k[2][kKeys][kQkPitch];
  bf16 v[2][kKeys][kVPitch];
};

template <int kWidth, int kPitch>
__device__ void fetch(bf16 (*to)[kPitch], const bf16* from, int rows) {
  for (int i = threadIdx.x; i < rows * (kWidth / 8); i += kThreads) {
    const int r = i / (kWidth / 8), c = i % (kWidth / 8) * 8;
    copy_async16(&to[r][c], from + r * kWidth + c, true);
  }
}

struct RowState {
  float out[16][4] = {};
  float top[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
};

// S = Q K^T for this warp's rows and one key block.
__device__ void scores(float (&s)[8][4], const Shared& sh, int buffer, int row) {
#pragma unroll
  for (int k = 0; k < kQkWidth; k += 16) {
    std::uint32_t a[4], b[4];
    load_a<false>(a, sh.q[0], kQkPitch, row, k);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      load_b<false>(b, sh.k[buffer][0], kQkPitch, n * 16, k);
      mma(s[2 * n], a, b[0], b[1]), mma(s[2 * n + 1], a, b[2], b[3]);
    }
  }
}

// Running softmax: s becomes the probabilities, earlier output is rescaled.
__device__ void softmax_step(float (&s)[8][4], RowState& st, float scale, int row, int key, bool diagonal) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float top = st.top[h];
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) {
        s[n][e] *= scale;
        if (diagonal && key + n * 8 + lane % 4 * 2 + e % 2 > row + lane / 4 + h * 8) s[n][e] = -1e30f;
        top = fmaxf(top, s[n][e]);
      }
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    const float keep = __expf(st.top[h] - top);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) sum += s[n][e] = __expf(s[n][e] - top);
    st.sum[h] = st.sum[h] * keep + sum;
    st.top[h] = top;
#pragma unroll
    for (int n = 0; n < 16; ++n) st.out[n][2 * h] *= keep, st.out[n][2 * h + 1] *= keep;
  }
}

__device__ void accumulate(const float (&p)[8][4], RowState& st, const Shared& sh, int buffer) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t a[4] = {pack2(p[2 * k][0], p[2 * k][1]), pack2(p[2 * k][2], p[2 * k][3]),
                                pack2(p[2 * k + 1][0], p[2 * k + 1][1]), pack2(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      std::uint32_t b[4];
      load_b<true>(b, sh.v[buffer][0], kVPitch, n * 16, k * 16);
      mma(st.out[2 * n], a, b[0], b[1]), mma(st.out[2 * n + 1], a, b[2], b[3]);
    }
  }
}

__device__ void write_rows(RowState& st, bf16* out, float* lse, int row) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = st.sum[h];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const int r = row + lane / 4 + h * 8;
    if (lane % 4 == 0) lse[r] = st.top[h] + __logf(sum);
#pragma unroll
    for (int n = 0; n < 16; ++n)
      *reinterpret_cast<std::uint32_t*>(out + std::size_t(r) * kVWidth + n * 8 + lane % 4 * 2) =
          pack2(st.out[n][2 * h] / sum, st.out[n][2 * h + 1] / sum);
  }
}

__global__ void __launch_bounds__(kThreads, 1) forward_kernel(AttentionShape s, AttentionTensors t) {
  extern __shared__ unsigned char raw[];
  Shared& sh = *reinterpret_cast<Shared*>(raw);
  const int block = gridDim.y - 1 - blockIdx.y, row0 = block * kRows, row = threadIdx.x / 32 * 16;
  const std::size_t head = std::size_t(blockIdx.x) * s.tokens;
  const int steps = (row0 + kRows) / kKeys;
  const auto start = [&](int step) {
    if (step < steps) {
      fetch<kQkWidth>(sh.k[step % 2], t.k + (head + step * kKeys) * kQkWidth, kKeys);
      fetch<kVWidth>(sh.v[step % 2], t.v + (head + step * kKeys) * kVWidth, kKeys);
    }
    copy_commit();
  };
  fetch<kQkWidth>(sh.q, t.q + (head + row0) * kQkWidth, kRows);
  start(0);
  RowState st;
  for (int step = 0; step < steps; ++step) {
    start(step + 1);
    copy_wait<1>();
    __syncthreads();
    if (step * kKeys <= row0 + row + 15) {
      float p[8][4] = {};
      scores(p, sh, step % 2, row);
      softmax_step(p, st, s.scale, row0 + row, step * kKeys, step * kKeys + kKeys > row0 + row);
      accumulate(p, st, sh, step % 2);
    }
    __syncthreads();
  }
  write_rows(st, t.out + head * kVWidth, t.lse + head, row0 + row);
}

}  // namespace

void attention_forward(const AttentionShape& s, const AttentionTensors& t, cudaStream_t stream) {
  K3_CUDA(cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Shared))));
  forward_kernel<<<dim3(s.batch_heads, s.tokens / kRows), kThreads, sizeof(Shared), stream>>>(s, t);
}

}  // namespace k3sim
