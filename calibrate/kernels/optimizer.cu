// Optimizer kernels: Newton-Schulz orthogonalisation (whole matrices and one per head) by cuBLASLt, and fused AdamW.
//   Newton-Schulz, five times: A = X X^T, B = b A + c A A, X = a X + B X, (a, b, c) = (3.4445, -4.7750, 2.0315), after
//   dividing X by its Frobenius norm. flops = 5 (4 m^2 n + 2 m^3) per matrix.   AdamW, FP32: 28 bytes per parameter.
// Source: k3-facts.md section 2.10, hardware.md section 5.6; Muon (Jordan 2024) for the coefficients.
#include <cmath>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/random_fill.h"
#include "calibrate/kernels/vec.cuh"

namespace k3sim {

namespace {

constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
constexpr int kIterations = 5;

__global__ void square_sums(const bf16* x, float* sums, std::size_t vectors) {
  const bf16* mine = x + blockIdx.y * vectors * 8;
  float sum = 0;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors;
       i += std::size_t(gridDim.x) * blockDim.x) {
    const Vec8 v = load8(mine + i * 8);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += f32(v.v[j]) * f32(v.v[j]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(&sums[blockIdx.y], sum);
}

__global__ void normalise(const bf16* x, const float* sums, bf16* out, std::size_t vectors) {
  const std::size_t base = blockIdx.y * vectors * 8;
  const float scale = rsqrtf(sums[blockIdx.y] + 1e-14f);
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors;
       i += std::size_t(gridDim.x) * blockDim.x) {
    Vec8 v = load8(x + base + i * 8);
#pragma unroll
    for (int j = 0; j < 8; ++j) v.v[j] = __float2bfloat16(f32(v.v[j]) * scale);
    store8(out + base + i * 8, v);
  }
}

struct NewtonSchulz {
  int batch, m, n;
  DeviceBuffer<bf16> x, y[2], a, b;
  DeviceBuffer<float> sums;
  LtMatmul gram, square, update;

  NewtonSchulz(Bench& bench, int batch_size, int rows, int cols)
      : batch(batch_size),
        m(rows),
        n(cols),
        x(random_buffer<bf16>(std::size_t(batch) * m * n, bench.next_seed())),
        a(std::size_t(batch) * m * m),
        b(std::size_t(batch) * m * m),
        sums(batch),
        gram({.m = m, .n = m, .k = n, .b_transposed = true, .batch = batch}),
        square({.m = m, .n = m, .k = m, .batch = batch}),
        update({.m = m, .n = n, .k = m, .batch = batch}) {
    for (auto& buffer : y) buffer = DeviceBuffer<bf16>(x.size()), buffer.poison();
  }

  const DeviceBuffer<bf16>& run(cudaStream_t s) {
    const std::size_t vectors = std::size_t(m) * n / 8;
    const dim3 grid(unsigned(std::min<std::size_t>((vectors + 255) / 256, batch > 32 ? 8 : 264)), batch);
    K3_CUDA(cudaMemsetAsync(sums.get(), 0, sums.bytes(), s));
    square_sums<<<grid, 256, 0, s>>>(x.get(), sums.get(), vectors);
    normalise<<<grid, 256, 0, s>>>(x.get(), sums.get(), y[0].get(), vectors);
    for (int i = 0; i < kIterations; ++i) {
      const bf16* from = y[i % 2].get();
      gram.run(from, from, nullptr, a.get(), s);
      square.run(a.get(), a.get(), a.get(), b.get(), s, kC, kB);
      update.run(b.get(), from, from, y[(i + 1) % 2].get(), s, 1.0f, kA);
    }
    return y[kIterations % 2];
  }
};

void multiply(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out, int m, int n, int k,
              bool bt) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[std::size_t(i) * k + l] * (bt ? b[std::size_t(j) * k + l] : b[std::size_t(l) * n + j]);
      out[std::size_t(i) * n + j] = sum;
    }
}

void check_newton_schulz(Bench& b) {
  NewtonSchulz ns(b, 2, 64, 256);
  const auto& result = ns.run(b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto all = download_double(ns.x);
  std::vector<double> want;
  for (int matrix = 0; matrix < ns.batch; ++matrix) {
    const std::size_t size = std::size_t(ns.m) * ns.n;
    std::vector<double> x(all.begin() + matrix * size, all.begin() + (matrix + 1) * size), next(size);
    std::vector<double> a(std::size_t(ns.m) * ns.m), aa(a.size());
    double norm = 0;
    for (const double v : x) norm += v * v;
    for (double& v : x) v /= std::sqrt(norm);
    for (int i = 0; i < kIterations; ++i) {
      multiply(x, x, a, ns.m, ns.m, ns.n, true);
      multiply(a, a, aa, ns.m, ns.m, ns.m, false);
      for (std::size_t e = 0; e < a.size(); ++e) aa[e] = kB * a[e] + kC * aa[e];
      multiply(aa, x, next, ns.m, ns.n, ns.m, false);
      for (std::size_t e = 0; e < size; ++e) x[e] = kA * x[e] + next[e];
    }
    want.insert(want.end(), x.begin(), x.end());
  }
  b.verify("muon_ns5", relative_error(result.download(), want), 5e-2);
}

struct Adam {
  DeviceBuffer<float> p, g, m, v;
  Adam(Bench& b, std::size_t n)
      : p(random_buffer<float>(n, b.next_seed())),
        g(random_buffer<float>(n, b.next_seed())),
        m(random_buffer<float>(n, b.next_seed(), {.scale = 0.1f})),
        v(random_buffer<float>(n, b.next_seed(), {.scale = 0.01f, .mean = 1.0f})) {}
};

struct AdamStep {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, decay = 0.1f, fix1 = 1 / 0.19f, fix2 = 1 / 0.0975f;
};

template <class T>
__host__ __device__ inline void adam_update(T& p, T g, T& m, T& v, const AdamStep& s) {
  m = T(s.beta1) * m + (T(1) - T(s.beta1)) * g;
  v = T(s.beta2) * v + (T(1) - T(s.beta2)) * g * g;
  p = p * (T(1) - T(s.lr) * T(s.decay)) - T(s.lr) * m * T(s.fix1) / (sqrt(v * T(s.fix2)) + T(s.eps));
}

__global__ void adamw_kernel(float4* p, const float4* g, float4* m, float4* v, std::size_t vectors, AdamStep s) {
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors;
       i += std::size_t(gridDim.x) * blockDim.x) {
    float4 pi = p[i], gi = g[i], mi = m[i], vi = v[i];
    adam_update(pi.x, gi.x, mi.x, vi.x, s), adam_update(pi.y, gi.y, mi.y, vi.y, s);
    adam_update(pi.z, gi.z, mi.z, vi.z, s), adam_update(pi.w, gi.w, mi.w, vi.w, s);
    p[i] = pi, m[i] = mi, v[i] = vi;
  }
}

void adamw(Adam& a, std::size_t n, cudaStream_t s) {
  adamw_kernel<<<132 * 16, 256, 0, s>>>(
      reinterpret_cast<float4*>(a.p.get()), reinterpret_cast<const float4*>(a.g.get()),
      reinterpret_cast<float4*>(a.m.get()), reinterpret_cast<float4*>(a.v.get()), n / 4, AdamStep{});
}

void check_adamw(Bench& b) {
  Adam a(b, 100'000);
  auto p = download_double(a.p), g = download_double(a.g), m = download_double(a.m), v = download_double(a.v);
  const auto before = p;
  adamw(a, a.p.size(), b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  auto got = download_double(a.p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    adam_update(p[i], g[i], m[i], v[i], AdamStep{});
    p[i] -= before[i], got[i] -= before[i];  // the update itself, not the parameter it is added to
  }
  b.verify("adamw update", relative_error(got, p), 1e-3);
  b.verify("adamw second moment", relative_error(a.v.download(), v), 1e-5);
}

}  // namespace

void run_optimizer(Bench& b) {
  check_newton_schulz(b);
  check_adamw(b);
  if (b.options().check_only) return;
  struct Size {
    int batch, m, n;
  };
  for (const Size z : {Size{1, 3072, 3584}, Size{4, 3072, 3584}, Size{288, 128, 7168}, Size{1, 7168, 12288}}) {
    if (b.options().quick && z.m == 7168) continue;
    const double m = z.m, n = z.n;
    const KernelId id{"optimizer",
                      "cublaslt_muon_ns5",
                      "fwd",
                      "bf16",
                      concat("batch=", z.batch, ";m=", z.m, ";n=", z.n),
                      z.batch * 5 * (4 * m * m * n + 2 * m * m * m),
                      0};
    if (b.skip(id)) continue;
    NewtonSchulz ns(b, z.batch, z.m, z.n);
    b.time(id, [&] { ns.run(b.stream()); });
  }
  for (const std::size_t n : {std::size_t(1) << 24, std::size_t(1) << 27, std::size_t(1) << 30}) {
    const KernelId id{"optimizer", "k3_adamw", "fwd", "fp32", concat("n=", n), 0, 28.0 * double(n)};
    if (b.skip(id) || (b.options().quick && n > (1u << 27))) continue;
    Adam a(b, n);
    b.time(id, [&] { adamw(a, n, b.stream()); });
  }
}

}  // namespace k3sim
