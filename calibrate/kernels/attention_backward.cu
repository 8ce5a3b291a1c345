// Causal attention backward: one block owns 64 keys, eight warps share the products of every 64-row query block.
// Source: attention_core.cuh.
#include "calibrate/kernels/attention_core.cuh"
#include "calibrate/kernels/mma.cuh"

namespace k3sim {

namespace {

constexpr int kBlock = 64, kThreads = 256;
constexpr int kQkPitch = kQkWidth + 8, kVPitch = kVWidth + 8, kPPitch = kBlock + 8;

struct Shared {
  bf16 k[kBlock][kQkPitch], v[kBlock][kVPitch];
  bf16 q[kBlock][kQkPitch], dout[kBlock][kVPitch];
  bf16 p[kBlock][kPPitch], ds[kBlock][kPPitch];  // [query][key]
};

template <int kWidth, int kPitch>
__device__ void fetch(bf16 (*to)[kPitch], const bf16* from) {
  for (int i = threadIdx.x; i < kBlock * (kWidth / 8); i += kThreads) {
    const int r = i / (kWidth / 8), c = i % (kWidth / 8) * 8;
    copy_async16(&to[r][c], from + r * kWidth + c, true);
  }
}

// A 16-row by (16 * kPairs)-column product over kDepth, operands in shared memory.
template <bool kAT, bool kBT, int kPairs, int kDepth>
__device__ void product(float (&acc)[2 * kPairs][4], const bf16* a, int lda, int row, const bf16* b, int ldb, int col) {
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    std::uint32_t fa[4], fb[4];
    load_a<kAT>(fa, a, lda, row, k);
#pragma unroll
    for (int n = 0; n < kPairs; ++n) {
      load_b<kBT>(fb, b, ldb, col + n * 16, k);
      mma(acc[2 * n], fa, fb[0], fb[1]), mma(acc[2 * n + 1], fa, fb[2], fb[3]);
    }
  }
}

__global__ void delta_kernel(const bf16* out, const bf16* dout, float* delta) {
  const std::size_t row = std::size_t(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int c = lane; c < kVWidth; c += 32) sum += f32(out[row * kVWidth + c]) * f32(dout[row * kVWidth + c]);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) delta[row] = sum;
}

// P and dS of one query block into shared memory; warp w: query rows 16 (w % 4), keys 32 (w / 4).
__device__ void probabilities(Shared& sh, const AttentionShape& s, const float* lse, const float* delta, int query0,
                              int key0) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp % 4 * 16, col = warp / 4 * 32;
  float sc[4][4] = {}, dp[4][4] = {};
  product<false, false, 2, kQkWidth>(sc, sh.q[0], kQkPitch, row, sh.k[0], kQkPitch, col);
  product<false, false, 2, kVWidth>(dp, sh.dout[0], kVPitch, row, sh.v[0], kVPitch, col);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = row + lane / 4 + h * 8;
    const float l = lse[query0 + r], d = delta[query0 + r];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int c = col + n * 8 + lane % 4 * 2;
      float p[2], ds[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        p[e] = key0 + c + e > query0 + r ? 0.0f : __expf(sc[n][2 * h + e] * s.scale - l);
        ds[e] = p[e] * (dp[n][2 * h + e] - d) * s.scale;
      }
      *reinterpret_cast<std::uint32_t*>(&sh.p[r][c]) = pack2(p[0], p[1]);
      *reinterpret_cast<std::uint32_t*>(&sh.ds[r][c]) = pack2(ds[0], ds[1]);
    }
  }
}

template <int kTiles>
__device__ void write_tile(const float (&acc)[kTiles][4], bf16* out, int width, int row, int col) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      *reinterpret_cast<std::uint32_t*>(out + std::size_t(row + lane / 4 + h * 8) * width + col + n * 8 +
                                        lane % 4 * 2) = pack2(acc[n][2 * h], acc[n][2 * h + 1]);
}

// dQ rows of this query block: warp w: rows 16 (w % 4), columns 96 (w / 4).
__device__ void add_dq(const Shared& sh, float* dq, int query0) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp % 4 * 16, col = warp / 4 * 96;
  float acc[12][4] = {};
  product<false, true, 6, kBlock>(acc, sh.ds[0], kPPitch, row, sh.k[0], kQkPitch, col);
#pragma unroll
  for (int n = 0; n < 12; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      atomicAdd(dq + std::size_t(query0 + row + lane / 4 + e / 2 * 8) * kQkWidth + col + n * 8 + lane % 4 * 2 + e % 2,
                acc[n][e]);
}

__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(AttentionShape s, AttentionTensors t, AttentionGradients g) {
  extern __shared__ unsigned char raw[];
  Shared& sh = *reinterpret_cast<Shared*>(raw);
  const std::size_t head = std::size_t(blockIdx.x) * s.tokens;
  const int key0 = blockIdx.y * kBlock, warp = threadIdx.x / 32, key_row = warp % 4 * 16;
  float dk[12][4] = {}, dv[8][4] = {};  // keys 16 (w % 4); columns 96 (w / 4) of dK and 64 (w / 4) of dV
  fetch<kQkWidth>(sh.k, t.k + (head + key0) * kQkWidth);
  fetch<kVWidth>(sh.v, t.v + (head + key0) * kVWidth);
  for (int query0 = key0; query0 < s.tokens; query0 += kBlock) {
    fetch<kQkWidth>(sh.q, t.q + (head + query0) * kQkWidth);
    fetch<kVWidth>(sh.dout, g.dout + (head + query0) * kVWidth);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
    probabilities(sh, s, t.lse + head, g.delta + head, query0, key0);
    __syncthreads();
    product<true, true, 4, kBlock>(dv, sh.p[0], kPPitch, key_row, sh.dout[0], kVPitch, warp / 4 * 64);
    product<true, true, 6, kBlock>(dk, sh.ds[0], kPPitch, key_row, sh.q[0], kQkPitch, warp / 4 * 96);
    add_dq(sh, g.dq + head * kQkWidth, query0);
    __syncthreads();
  }
  write_tile(dv, g.dv + (head + key0) * kVWidth, kVWidth, key_row, warp / 4 * 64);
  write_tile(dk, g.dk + (head + key0) * kQkWidth, kQkWidth, key_row, warp / 4 * 96);
}

}  // namespace

void attention_backward(const AttentionShape& s, const AttentionTensors& t, const AttentionGradients& g,
                        cudaStream_t stream) {
  const std::size_t rows = std::size_t(s.batch_heads) * s.tokens;
  K3_CUDA(cudaMemsetAsync(g.dq, 0, rows * kQkWidth * sizeof(float), stream));
  delta_kernel<<<unsigned(rows / 8), 256, 0, stream>>>(t.out, g.dout, g.delta);
  K3_CUDA(cudaFuncSetAttribute(backward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Shared))));
  backward_kernel<<<dim3(s.batch_heads, s.tokens / kBlock), kThreads, sizeof(Shared), stream>>>(s, t, g);
}

}  // namespace k3sim
