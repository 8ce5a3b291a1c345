// KDA backward: the reverse scan (dS and R), then input gradients chunk by chunk; see kda_core.cuh for the algebra.
// Source: k3-facts.md section 4.7 for what implementations keep; the derivation is in kda_core.cuh.
#include "calibrate/kernels/kda_core.cuh"
#include "calibrate/kernels/kda_scan.cuh"

namespace k3sim {

namespace {

__global__ void __launch_bounds__(256)
    backward_scan(KdaShape s, const KdaPrepared* prepared, const bf16* dout, bf16* dstates, bf16* r_out) {
  extern __shared__ unsigned char raw[];
  KdaStage* stages = reinterpret_cast<KdaStage*>(raw);
  const KdaWalk walk(s, blockIdx.x, true);
  const int v0 = threadIdx.x / 32 * 16;
  float ds[16][4] = {};
  walk.fetch(stages, 0, walk.chunk(0), prepared, dout);
  walk.fetch(stages, 1, walk.chunk(1), prepared, dout);
  for (int c = 0; c < walk.count; ++c) {
    copy_wait<1>();
    __syncthreads();
    walk.fetch(stages, c + 2, walk.chunk(c + 2), prepared, dout);
    KdaStage& st = stages[c % kKdaStages];
    store_state(ds, dstates + walk.state_offset(walk.chunk(c)), v0);
    float du[2][4] = {}, r[2][4] = {};
    std::uint32_t a[4], b[4], o[4];
    load_a<true>(o, st.x[0], kKdaPitch, v0, 0);
    load_b<true>(b, st.op.p[0], kKdaSmallPitch, 0, 0);
    mma(du[0], o, b[0], b[1]), mma(du[1], o, b[2], b[3]);
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
      state_fragment(ds, kk, a);
      load_b<false>(b, st.op.kb[0], kKdaPitch, 0, kk * 16);
      mma(du[0], a, b[0], b[1]), mma(du[1], a, b[2], b[3]);
    }
    pair_fragment(du, a);
    load_b<true>(b, st.op.t[0], kKdaSmallPitch, 0, 0);
    mma(r[0], a, b[0], b[1]), mma(r[1], a, b[2], b[3]);
    walk.store_rows(st, v0, r, walk.chunk(c), r_out);
    for_each_element(v0, [&](int n, int e, int, int token) { r[n][e] *= -st.op.beta[token]; });
    pair_fragment(r, a);
    decay_state(ds, st.op.decay);
#pragma unroll
    for (int nn = 0; nn < 8; ++nn) {
      load_b<true>(b, st.op.q[0], kKdaPitch, nn * 16, 0);
      mma(ds[2 * nn], o, b[0], b[1]), mma(ds[2 * nn + 1], o, b[2], b[3]);
      load_b<true>(b, st.op.k[0], kKdaPitch, nn * 16, 0);
      mma(ds[2 * nn], a, b[0], b[1]), mma(ds[2 * nn + 1], a, b[2], b[3]);
    }
  }
}

struct LocalShared {
  bf16 state[kKdaHead][kKdaPitch], dstate[kKdaHead][kKdaPitch];  // [value][key]
  bf16 dout[kKdaChunk][kKdaPitch], r[kKdaChunk][kKdaPitch], u[kKdaChunk][kKdaPitch];
  float dq[kKdaChunk][kKdaHead + 4], z[kKdaChunk][kKdaHead + 4], dkb[kKdaChunk][kKdaHead + 4];
  float dp[kKdaChunk][kKdaChunk], da[kKdaChunk][kKdaChunk];
  float beta[kKdaChunk], ddecay[2][kKdaHead];
};

__device__ void load_rows(bf16 (*to)[kKdaPitch], const bf16* from, int rows, std::size_t pitch) {
  for (int i = threadIdx.x; i < rows * 16; i += blockDim.x)
    copy_async16(&to[i / 16][i % 16 * 8], from + i / 16 * pitch + i % 16 * 8, true);
}

__device__ void store_tile(float (*to)[kKdaHead + 4], int n0, const float (&acc)[2][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) to[lane / 4 + e / 2 * 8][n0 + n * 8 + lane % 4 * 2 + e % 2] = acc[n][e];
}

// The three products with the states; warp w owns keys 16 w .. 16 w + 15.
__device__ void state_products(LocalShared& sh) {
  const int n0 = threadIdx.x / 32 * 16;
  float dq[2][4] = {}, z[2][4] = {}, dkb[2][4] = {};
  std::uint32_t a[4], b[4];
#pragma unroll
  for (int v = 0; v < kKdaHead; v += 16) {
    load_b<true>(b, sh.state[0], kKdaPitch, n0, v);
    load_a<false>(a, sh.dout[0], kKdaPitch, 0, v);
    mma(dq[0], a, b[0], b[1]), mma(dq[1], a, b[2], b[3]);
    load_a<false>(a, sh.r[0], kKdaPitch, 0, v);
    mma(z[0], a, b[0], b[1]), mma(z[1], a, b[2], b[3]);
    load_b<true>(b, sh.dstate[0], kKdaPitch, n0, v);
    load_a<false>(a, sh.u[0], kKdaPitch, 0, v);
    mma(dkb[0], a, b[0], b[1]), mma(dkb[1], a, b[2], b[3]);
  }
  store_tile(sh.dq, n0, dq);
  store_tile(sh.z, n0, z);
  store_tile(sh.dkb, n0, dkb);
}

// dP (warp 0) and dA (warp 1), masked.
__device__ void pair_products(LocalShared& sh) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp > 1) return;
  float acc[2][4] = {};
  std::uint32_t a[4], b[4];
#pragma unroll
  for (int v = 0; v < kKdaHead; v += 16) {
    load_a<false>(a, warp == 0 ? sh.dout[0] : sh.r[0], kKdaPitch, 0, v);
    load_b<false>(b, sh.u[0], kKdaPitch, 0, v);
    mma(acc[0], a, b[0], b[1]), mma(acc[1], a, b[2], b[3]);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = lane / 4 + e / 2 * 8, j = n * 8 + lane % 4 * 2 + e % 2;
      if (warp == 0)
        sh.dp[i][j] = j <= i ? acc[n][e] : 0.0f;
      else
        sh.da[i][j] = j < i ? -sh.beta[i] * acc[n][e] : 0.0f;
    }
}

struct Channel {
  float qt[kKdaChunk], kt[kKdaChunk], kh[kKdaChunk], up[kKdaChunk];  // q~, k~, k^, e^G
  float last;                                                        // e^G_last
};

__device__ Channel load_channel(const KdaInputs& in, std::size_t base, std::size_t pitch, int c) {
  Channel ch;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i) {
    const std::size_t at = base + i * pitch + c;
    sum += f32(in.g[at]);
    ch.up[i] = __expf(sum);
    const float key = f32(in.k[at]);
    ch.qt[i] = f32(in.q[at]) * rsqrtf(float(kKdaHead)) * ch.up[i];
    ch.kt[i] = key * ch.up[i];
    ch.kh[i] = key * __expf(-sum);
  }
  ch.last = ch.up[kKdaChunk - 1];
  return ch;
}

// Chain rule of one key channel over the 16 tokens.
__device__ void channel_gradients(const LocalShared& sh, const Channel& ch, int c, std::size_t base, std::size_t pitch,
                                  const KdaGradients& grad) {
  float dkt[kKdaChunk], dkh[kKdaChunk], dqt[kKdaChunk];
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i) dqt[i] = sh.dq[i][c], dkt[i] = -sh.beta[i] * sh.z[i][c], dkh[i] = 0;
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i)
#pragma unroll
    for (int j = 0; j <= i; ++j) {
      dqt[i] += sh.dp[i][j] * ch.kh[j];
      dkt[i] += sh.da[i][j] * ch.kh[j];
      dkh[j] += sh.da[i][j] * ch.kt[i] + sh.dp[i][j] * ch.qt[i];
    }
  float carry = (sh.ddecay[0][c] + sh.ddecay[1][c]) * ch.last;
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i) carry += sh.dkb[i][c] * ch.kh[i] * ch.last;
#pragma unroll
  for (int i = kKdaChunk - 1; i >= 0; --i) {
    const std::size_t at = base + i * pitch + c;
    const float dkb = sh.dkb[i][c] * ch.last, inverse = __frcp_rn(ch.up[i]);
    carry += dqt[i] * ch.qt[i] + dkt[i] * ch.kt[i] - (dkh[i] + dkb) * ch.kh[i];
    grad.dq[at] = __float2bfloat16(dqt[i] * ch.up[i] * rsqrtf(float(kKdaHead)));
    grad.dk[at] = __float2bfloat16(dkt[i] * ch.up[i] + (dkh[i] + dkb) * inverse);
    grad.dg[at] = carry;
  }
}

// dD: 256 threads, each half of the values of one key.
__device__ void decay_gradient(LocalShared& sh) {
  const int c = threadIdx.x % kKdaHead, half = threadIdx.x / kKdaHead;
  float sum = 0;
  for (int v = half * 64; v < half * 64 + 64; ++v) sum += f32(sh.state[v][c]) * f32(sh.dstate[v][c]);
  sh.ddecay[half][c] = sum;
}

// dV = b R and db = R.U / b; sixteen threads per token.
__device__ void value_gradients(const LocalShared& sh, std::size_t token, int heads, int head,
                                const KdaGradients& grad) {
  const int i = threadIdx.x / 16, part = threadIdx.x % 16 * 8;
  float dot = 0;
  Vec8 dv;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float r = f32(sh.r[i][part + j]);
    dot += r * f32(sh.u[i][part + j]);
    dv.v[j] = __float2bfloat16(sh.beta[i] * r);
  }
  store8(grad.dv + ((token + i) * heads + head) * kKdaHead + part, dv);
  for (int o = 8; o > 0; o >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, o);
  if (part == 0) grad.dbeta[(token + i) * heads + head] = dot / sh.beta[i];
}

__global__ void __launch_bounds__(256) local_kernel(KdaShape s, KdaInputs in, const bf16* states, const bf16* dstates,
                                                    const bf16* u, const bf16* r, KdaGradients grad) {
  extern __shared__ unsigned char raw[];
  LocalShared& sh = *reinterpret_cast<LocalShared*>(raw);
  const int chunk = blockIdx.x, head = blockIdx.y;
  const std::size_t token = std::size_t(chunk) * kKdaChunk, pitch = std::size_t(s.heads) * kKdaHead;
  const std::size_t base = (token * s.heads + head) * kKdaHead;
  const std::size_t state = (std::size_t(chunk) * s.heads + head) * kKdaHead * kKdaHead;
  load_rows(sh.state, states + state, kKdaHead, kKdaHead);
  load_rows(sh.dstate, dstates + state, kKdaHead, kKdaHead);
  load_rows(sh.dout, grad.dout + base, kKdaChunk, pitch);
  load_rows(sh.r, r + base, kKdaChunk, pitch);
  load_rows(sh.u, u + base, kKdaChunk, pitch);
  if (threadIdx.x < kKdaChunk) sh.beta[threadIdx.x] = in.beta[(token + threadIdx.x) * s.heads + head];
  copy_commit();
  copy_wait<0>();
  __syncthreads();
  state_products(sh);
  pair_products(sh);
  decay_gradient(sh);
  value_gradients(sh, token, s.heads, head, grad);
  __syncthreads();
  if (threadIdx.x < kKdaHead) {
    const Channel ch = load_channel(in, base, pitch, threadIdx.x);
    channel_gradients(sh, ch, threadIdx.x, base, pitch, grad);
  }
}

}  // namespace

void kda_backward(const KdaShape& s, const KdaInputs& in, KdaWorkspace& w, const KdaGradients& grad,
                  cudaStream_t stream) {
  const auto* prepared = reinterpret_cast<const KdaPrepared*>(w.prepared.get());
  const int scan_shared = kKdaStages * int(sizeof(KdaStage)), local_shared = int(sizeof(LocalShared));
  K3_CUDA(cudaFuncSetAttribute(backward_scan, cudaFuncAttributeMaxDynamicSharedMemorySize, scan_shared));
  K3_CUDA(cudaFuncSetAttribute(local_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, local_shared));
  backward_scan<<<s.sequences * s.heads, 256, scan_shared, stream>>>(s, prepared, grad.dout, w.dstates.get(),
                                                                     w.r.get());
  local_kernel<<<dim3(s.chunks(), s.heads), 256, local_shared, stream>>>(s, in, w.states.get(), w.dstates.get(),
                                                                         w.u.get(), w.r.get(), grad);
}

}  // namespace k3sim
