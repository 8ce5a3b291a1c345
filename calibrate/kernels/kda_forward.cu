// KDA prepare and forward scan; see kda_core.cuh for the algebra.
// Source: k3-facts.md sections 4.1, 4.2.
#include "calibrate/kernels/kda_core.cuh"
#include "calibrate/kernels/kda_scan.cuh"

namespace k3sim {

namespace {

constexpr int kPairPitch = kKdaHead + 1;  // FP32 rows in shared memory, one word of padding

struct PrepareShared {
  float q[kKdaChunk][kPairPitch], k[kKdaChunk][kPairPitch], kh[kKdaChunk][kPairPitch];
  float a[kKdaChunk][kKdaChunk + 1], t[kKdaChunk][kKdaChunk + 1];
};

// One thread per key channel: decays and the scaled copies of q and k.
__device__ void scale_channels(const KdaInputs& in, std::size_t base, std::size_t pitch, PrepareShared& sh,
                               KdaPrepared& out) {
  const int c = threadIdx.x;
  float total[kKdaChunk], sum = 0, key[kKdaChunk];
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i) {
    const std::size_t at = base + i * pitch + c;
    total[i] = sum += f32(in.g[at]);
    key[i] = f32(in.k[at]);
    const float up = __expf(total[i]);
    sh.q[i][c] = f32(in.q[at]) * rsqrtf(float(kKdaHead)) * up;
    sh.k[i][c] = key[i] * up;
    sh.kh[i][c] = key[i] * __expf(-total[i]);
    out.q[i][c] = __float2bfloat16(sh.q[i][c]);
    out.k[i][c] = __float2bfloat16(sh.k[i][c]);
  }
#pragma unroll
  for (int i = 0; i < kKdaChunk; ++i) out.kb[i][c] = __float2bfloat16(key[i] * __expf(sum - total[i]));
  out.decay[c] = __expf(sum);
}

// T = (I + b A)^-1, one thread per column: t[i] = [i == j] - b_i sum_{l < i} A[i][l] t[l].
__device__ void invert(const float* beta, PrepareShared& sh) {
  const int j = threadIdx.x;
  for (int i = 0; i < kKdaChunk; ++i) {
    float sum = 0;
    for (int l = j; l < i; ++l) sum += sh.a[i][l] * sh.t[l][j];
    sh.t[i][j] = (i == j ? 1.0f : 0.0f) - (i > j ? beta[i] * sum : 0.0f);
  }
}

__global__ void __launch_bounds__(kKdaHead) prepare_kernel(KdaShape s, KdaInputs in, KdaPrepared* prepared) {
  __shared__ PrepareShared sh;
  __shared__ float beta[kKdaChunk];
  const int chunk = blockIdx.x, head = blockIdx.y;
  KdaPrepared& out = prepared[std::size_t(chunk) * s.heads + head];
  const std::size_t token = std::size_t(chunk) * kKdaChunk, pitch = std::size_t(s.heads) * kKdaHead;
  if (threadIdx.x < kKdaChunk) {
    beta[threadIdx.x] = in.beta[(token + threadIdx.x) * s.heads + head];
    out.beta[threadIdx.x] = beta[threadIdx.x];
  }
  scale_channels(in, (token * s.heads + head) * kKdaHead, pitch, sh, out);
  __syncthreads();
  for (int pair = threadIdx.x; pair < kKdaChunk * kKdaChunk; pair += kKdaHead) {
    const int i = pair / kKdaChunk, j = pair % kKdaChunk;
    float a = 0, p = 0;
    if (j <= i)
      for (int c = 0; c < kKdaHead; ++c) {
        a += sh.k[i][c] * sh.kh[j][c];
        p += sh.q[i][c] * sh.kh[j][c];
      }
    sh.a[i][j] = j < i ? a : 0.0f;
    out.p[i][j] = __float2bfloat16(p);
  }
  __syncthreads();
  if (threadIdx.x < kKdaChunk) invert(beta, sh);
  __syncthreads();
  for (int pair = threadIdx.x; pair < kKdaChunk * kKdaChunk; pair += kKdaHead)
    out.t[pair / kKdaChunk][pair % kKdaChunk] = __float2bfloat16(sh.t[pair / kKdaChunk][pair % kKdaChunk]);
}

// State transposed, [value][key]: this warp's 16 value rows as accumulators over 16 key tiles.
template <bool kKeep>
__global__ void __launch_bounds__(256)
    forward_scan(KdaShape s, const KdaPrepared* prepared, const bf16* v, bf16* out, bf16* states, bf16* u_out) {
  extern __shared__ unsigned char raw[];
  KdaStage* stages = reinterpret_cast<KdaStage*>(raw);
  const KdaWalk walk(s, blockIdx.x);
  const int v0 = threadIdx.x / 32 * 16;
  float state[16][4] = {};
  walk.fetch(stages, 0, walk.chunk(0), prepared, v);
  walk.fetch(stages, 1, walk.chunk(1), prepared, v);
  for (int c = 0; c < walk.count; ++c) {
    copy_wait<1>();
    __syncthreads();
    walk.fetch(stages, c + 2, walk.chunk(c + 2), prepared, v);
    KdaStage& st = stages[c % kKdaStages];
    if constexpr (kKeep) store_state(state, states + walk.state_offset(walk.chunk(c)), v0);
    float x[2][4] = {}, o[2][4] = {}, u[2][4] = {};
    std::uint32_t a[4], b[4];
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
      state_fragment(state, kk, a);
      load_b<false>(b, st.op.k[0], kKdaPitch, 0, kk * 16);
      mma(x[0], a, b[0], b[1]), mma(x[1], a, b[2], b[3]);
      load_b<false>(b, st.op.q[0], kKdaPitch, 0, kk * 16);
      mma(o[0], a, b[0], b[1]), mma(o[1], a, b[2], b[3]);
    }
    for_each_element(
        v0, [&](int n, int e, int row, int token) { x[n][e] = st.op.beta[token] * (f32(st.x[token][row]) - x[n][e]); });
    pair_fragment(x, a);
    load_b<false>(b, st.op.t[0], kKdaSmallPitch, 0, 0);
    mma(u[0], a, b[0], b[1]), mma(u[1], a, b[2], b[3]);
    pair_fragment(u, a);
    load_b<false>(b, st.op.p[0], kKdaSmallPitch, 0, 0);
    mma(o[0], a, b[0], b[1]), mma(o[1], a, b[2], b[3]);
    decay_state(state, st.op.decay);
#pragma unroll
    for (int nn = 0; nn < 8; ++nn) {
      load_b<true>(b, st.op.kb[0], kKdaPitch, nn * 16, 0);
      mma(state[2 * nn], a, b[0], b[1]), mma(state[2 * nn + 1], a, b[2], b[3]);
    }
    walk.store_rows(st, v0, o, walk.chunk(c), out);
    if constexpr (kKeep) walk.store_rows(st, v0, u, walk.chunk(c), u_out);
  }
}

}  // namespace

KdaWorkspace::KdaWorkspace(const KdaShape& s, bool with_backward)
    : prepared(std::size_t(s.chunks()) * s.heads * sizeof(KdaPrepared)) {
  if (!with_backward) return;
  const std::size_t state = std::size_t(s.chunks()) * s.heads * kKdaHead * kKdaHead;
  states = DeviceBuffer<bf16>(state), dstates = DeviceBuffer<bf16>(state);
  u = DeviceBuffer<bf16>(s.elements()), r = DeviceBuffer<bf16>(s.elements());
}

void kda_forward(const KdaShape& s, const KdaInputs& in, KdaWorkspace& w, bf16* out, bool keep, cudaStream_t stream) {
  auto* prepared = reinterpret_cast<KdaPrepared*>(w.prepared.get());
  prepare_kernel<<<dim3(s.chunks(), s.heads), kKdaHead, 0, stream>>>(s, in, prepared);
  const int shared = kKdaStages * int(sizeof(KdaStage)), grid = s.sequences * s.heads;
  const auto scan = keep ? forward_scan<true> : forward_scan<false>;
  K3_CUDA(cudaFuncSetAttribute(scan, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  scan<<<grid, 256, shared, stream>>>(s, prepared, in.v, out, w.states.get(), w.u.get());
}

}  // namespace k3sim
