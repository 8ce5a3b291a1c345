// MoonEP data movement kernels over peer memory; see moonep_kernels.cuh.
// Source: k3-facts.md sections 3.3 (step 6), 3.6.
#include "calibrate/kernels/moonep_kernels.cuh"

namespace k3sim {

namespace {

constexpr int kThreads = 256;
constexpr int kHead = 1 << 30;  // set in link[] for the row that crossed the network; the low bits hold next row + 1

// One block per token: finds the first entry of every destination rank, chains the others behind it.
__global__ void __launch_bounds__(kThreads)
    dispatch_kernel(MoonepShape s, const bf16* x, const int* code, MoonepPeers peers, int width8) {
  const int token = blockIdx.x, capacity = s.capacity_rows();
  const int* mine = code + std::size_t(token) * s.topk;
  __shared__ int primary[32];
  if (int(threadIdx.x) < s.topk) {
    const int k = threadIdx.x, rank = mine[k] / capacity, row = mine[k] % capacity;
    bool first = true;
    for (int j = 0; j < k; ++j) first = first && mine[j] / capacity != rank;
    int next = 0;
    for (int j = k + 1; j < s.topk; ++j)
      if (mine[j] / capacity == rank) {
        next = mine[j] % capacity + 1;
        break;
      }
    primary[k] = first;
    peers.link[rank][row] = next | (first ? kHead : 0);
  }
  __syncthreads();
  for (int at = threadIdx.x; at < width8; at += kThreads) {
    const Vec8 v = load8(x + (std::size_t(token) * width8 + at) * 8);
    for (int k = 0; k < s.topk; ++k)
      if (primary[k]) store8(peers.rows[mine[k] / capacity] + (std::size_t(mine[k] % capacity) * width8 + at) * 8, v);
  }
}

__global__ void __launch_bounds__(kThreads) expand_kernel(bf16* rows, const int* link, int width8) {
  int record = link[blockIdx.x];
  if ((record & kHead) == 0) return;
  const std::size_t head = blockIdx.x;
  for (record &= kHead - 1; record != 0; record = link[record - 1] & (kHead - 1))
    for (int at = threadIdx.x; at < width8; at += kThreads)
      store8(rows + (std::size_t(record - 1) * width8 + at) * 8, load8(rows + (head * width8 + at) * 8));
}

__global__ void __launch_bounds__(kThreads) reduce_kernel(bf16* rows, const int* link, int width8) {
  const int head_record = link[blockIdx.x];
  if ((head_record & kHead) == 0 || (head_record & (kHead - 1)) == 0) return;
  for (int at = threadIdx.x; at < width8; at += kThreads) {
    bf16* head = rows + (std::size_t(blockIdx.x) * width8 + at) * 8;
    Vec8 out = load8(head);
    float sum[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] = f32(out.v[j]);
    for (int record = head_record & (kHead - 1); record != 0; record = link[record - 1] & (kHead - 1)) {
      const Vec8 v = load8(rows + (std::size_t(record - 1) * width8 + at) * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += f32(v.v[j]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = __float2bfloat16(sum[j]);
    store8(head, out);
  }
}

__global__ void __launch_bounds__(kThreads)
    combine_kernel(MoonepShape s, const int* code, MoonepPeers peers, bf16* y, int width8) {
  const int token = blockIdx.x, capacity = s.capacity_rows();
  __shared__ const bf16* source[32];
  __shared__ int count;
  if (threadIdx.x == 0) {
    const int* mine = code + std::size_t(token) * s.topk;
    unsigned long long seen = 0;
    int n = 0;
    for (int k = 0; k < s.topk; ++k) {
      const int rank = mine[k] / capacity;
      if ((seen >> rank & 1) == 0) source[n++] = peers.rows[rank] + std::size_t(mine[k] % capacity) * width8 * 8;
      seen |= 1ull << rank;
    }
    count = n;
  }
  __syncthreads();
  for (int at = threadIdx.x; at < width8; at += kThreads) {
    float sum[8] = {};
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
      const Vec8 v = load8(source[k] + at * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += f32(v.v[j]);
    }
    Vec8 o;
#pragma unroll
    for (int j = 0; j < 8; ++j) o.v[j] = __float2bfloat16(sum[j]);
    store8(y + (std::size_t(token) * width8 + at) * 8, o);
  }
}

__global__ void push_kernel(const uint4* from, uint4* to, std::size_t n) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < n; i += 4 * stride) {
    const uint4 a = from[i], b = from[i + stride], c = from[i + 2 * stride], d = from[i + 3 * stride];
    to[i] = a, to[i + stride] = b, to[i + 2 * stride] = c, to[i + 3 * stride] = d;
  }
  for (; i < n; i += stride) to[i] = from[i];
}

__global__ void return_kernel(float4* grad, float4* replica, std::size_t n) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const float4 r = replica[i];
    float4 g = grad[i];
    g.x += r.x, g.y += r.y, g.z += r.z, g.w += r.w;
    grad[i] = g;
    replica[i] = {0, 0, 0, 0};
  }
}

}  // namespace

void moonep_dispatch(const MoonepShape& s, const bf16* x, const int* code, const MoonepPeers& peers, int width,
                     cudaStream_t stream) {
  dispatch_kernel<<<s.tokens, kThreads, 0, stream>>>(s, x, code, peers, width / 8);
}
void moonep_expand(bf16* rows, const int* link, int capacity, int width, cudaStream_t stream) {
  expand_kernel<<<capacity, kThreads, 0, stream>>>(rows, link, width / 8);
}
void moonep_reduce(bf16* rows, const int* link, int capacity, int width, cudaStream_t stream) {
  reduce_kernel<<<capacity, kThreads, 0, stream>>>(rows, link, width / 8);
}
void moonep_combine(const MoonepShape& s, const int* code, const MoonepPeers& peers, bf16* y, int width,
                    cudaStream_t stream) {
  combine_kernel<<<s.tokens, kThreads, 0, stream>>>(s, code, peers, y, width / 8);
}
void moonep_push(const void* from, void* to, std::size_t bytes, int blocks, cudaStream_t stream) {
  push_kernel<<<blocks, 1024, 0, stream>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to), bytes / 16);
}
void moonep_return_gradient(float* grad, float* replica, std::size_t n, int blocks, cudaStream_t stream) {
  return_kernel<<<blocks, 1024, 0, stream>>>(reinterpret_cast<float4*>(grad), reinterpret_cast<float4*>(replica),
                                             n / 4);
}

}  // namespace k3sim
