// RMSNorm and Block Attention Residual mixes, forward and backward.
//   RMSNorm: y = x * rsqrt(mean(x^2) + eps) * w.
//   AttnRes mix of n source rows: score_r = sum_i c_i x_ri * rstd_r (c = pseudo-query times norm weight), p =
//   softmax(score), y = sum_r p_r x_r. Backward: ds_r = p_r (dy.x_r - sum p dy.x), dx_r = p_r dy + ds_r rstd_r (c -
//   score_r rstd_r x_r / D). One block per token at a time; parameter gradients stay in registers and are added once
//   per block.
// Source: k3-facts.md section 1.2 (AttnRes data flow), hardware.md section 5.4. Width at most 12288, at most 9 sources.
#include <cmath>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/random_fill.h"
#include "calibrate/kernels/vec.cuh"

namespace k3sim {

namespace {

constexpr float kEps = 1e-5f;
constexpr int kThreads = 256;
constexpr int kMaxSources = 9;

// Rows [0, rows) of width D = 8 * width8; each thread holds up to kVec vectors of a row.
template <int kVec>
__global__ void __launch_bounds__(kThreads) rms_forward(const bf16* x, const float* w, bf16* y, int width8) {
  const bf16* row = x + std::size_t(blockIdx.x) * width8 * 8;
  Vec8 held[kVec];
  float square = 0;
#pragma unroll
  for (int v = 0; v < kVec; ++v) {
    const int at = threadIdx.x + v * kThreads;
    if (at >= width8) continue;
    held[v] = load8(row + at * 8);
#pragma unroll
    for (int j = 0; j < 8; ++j) square += f32(held[v].v[j]) * f32(held[v].v[j]);
  }
  const float rstd = rsqrtf(block_sum(square) / float(width8 * 8) + kEps);
#pragma unroll
  for (int v = 0; v < kVec; ++v) {
    const int at = threadIdx.x + v * kThreads;
    if (at >= width8) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) held[v].v[j] = __float2bfloat16(f32(held[v].v[j]) * rstd * w[at * 8 + j]);
    store8(y + (std::size_t(blockIdx.x) * width8 + at) * 8, held[v]);
  }
}

// Parameter gradients of one block: partial[block][width]; summed by sum_partials.
template <int kVec>
__device__ void write_partial(const float (&grad)[kVec][8], float* partial, int width8) {
#pragma unroll
  for (int v = 0; v < kVec; ++v)
    if (const int at = threadIdx.x + v * kThreads; at < width8) {
      float4* to = reinterpret_cast<float4*>(partial + (std::size_t(blockIdx.x) * width8 + at) * 8);
      to[0] = {grad[v][0], grad[v][1], grad[v][2], grad[v][3]};
      to[1] = {grad[v][4], grad[v][5], grad[v][6], grad[v][7]};
    }
}

// 32 columns per block, eight rows of threads share the partial rows.
__global__ void sum_partials(const float* partial, float* out, int blocks, int width) {
  const int column = blockIdx.x * 32 + threadIdx.x % 32, part = threadIdx.x / 32;
  float sum = 0;
#pragma unroll 4
  for (int b = part; b < blocks; b += kThreads / 32) sum += partial[std::size_t(b) * width + column];
  __shared__ float parts[kThreads / 32][33];
  parts[part][threadIdx.x % 32] = sum;
  __syncthreads();
  if (part != 0) return;
  for (int p = 1; p < kThreads / 32; ++p) sum += parts[p][threadIdx.x];
  out[column] = sum;
}

template <int kVec>
__global__ void __launch_bounds__(kThreads)
    rms_backward(const bf16* x, const float* w, const bf16* dy, bf16* dx, float* partial, int rows, int width8) {
  float weight_grad[kVec][8] = {};
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    const std::size_t base = std::size_t(r) * width8 * 8;
    Vec8 xs[kVec], ds[kVec];
    float square = 0, dot = 0;
#pragma unroll
    for (int v = 0; v < kVec; ++v) {
      const int at = threadIdx.x + v * kThreads;
      if (at >= width8) continue;
      xs[v] = load8(x + base + at * 8);
      ds[v] = load8(dy + base + at * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        square += f32(xs[v].v[j]) * f32(xs[v].v[j]);
        dot += f32(xs[v].v[j]) * f32(ds[v].v[j]) * w[at * 8 + j];
      }
    }
    const float width = float(width8 * 8);
    const float rstd = rsqrtf(block_sum(square) / width + kEps);
    const float pull = block_sum(dot) * rstd * rstd * rstd / width;
#pragma unroll
    for (int v = 0; v < kVec; ++v) {
      const int at = threadIdx.x + v * kThreads;
      if (at >= width8) continue;
      Vec8 out;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float xf = f32(xs[v].v[j]), df = f32(ds[v].v[j]);
        weight_grad[v][j] += df * xf * rstd;
        out.v[j] = __float2bfloat16(df * w[at * 8 + j] * rstd - xf * pull);
      }
      store8(dx + base + at * 8, out);
    }
  }
  write_partial<kVec>(weight_grad, partial, width8);
}

struct MixArgs {
  const bf16* rows;    // [sources, tokens, width]
  const float* query;  // c, [width]
  int sources, tokens, width8;
};

__device__ std::size_t mix_row(const MixArgs& a, int source, int token) {
  return (std::size_t(source) * a.tokens + token) * a.width8 * 8;
}

// Scores of the sources of one token; also the inverse norms.
__device__ void mix_scores(const MixArgs& a, int token, float* score, float* rstd) {
  for (int r = 0; r < a.sources; ++r) {
    const bf16* row = a.rows + mix_row(a, r, token);
    float square = 0, dot = 0;
    for (int at = threadIdx.x; at < a.width8; at += kThreads) {
      const Vec8 x = load8(row + at * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        square += f32(x.v[j]) * f32(x.v[j]);
        dot += f32(x.v[j]) * a.query[at * 8 + j];
      }
    }
    rstd[r] = rsqrtf(block_sum(square) / float(a.width8 * 8) + kEps);
    score[r] = block_sum(dot) * rstd[r];
  }
}

__device__ void softmax(float* x, int n) {
  float top = x[0], sum = 0;
  for (int r = 1; r < n; ++r) top = fmaxf(top, x[r]);
  for (int r = 0; r < n; ++r) sum += x[r] = __expf(x[r] - top);
  for (int r = 0; r < n; ++r) x[r] /= sum;
}

__global__ void __launch_bounds__(kThreads) mix_forward(MixArgs a, bf16* out) {
  float p[kMaxSources], rstd[kMaxSources];
  mix_scores(a, blockIdx.x, p, rstd);
  softmax(p, a.sources);
  for (int at = threadIdx.x; at < a.width8; at += kThreads) {
    float sum[8] = {};
    for (int r = 0; r < a.sources; ++r) {
      const Vec8 x = load8(a.rows + mix_row(a, r, blockIdx.x) + at * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += p[r] * f32(x.v[j]);
    }
    Vec8 o;
#pragma unroll
    for (int j = 0; j < 8; ++j) o.v[j] = __float2bfloat16(sum[j]);
    store8(out + (std::size_t(blockIdx.x) * a.width8 + at) * 8, o);
  }
}

template <int kVec>
__global__ void __launch_bounds__(kThreads) mix_backward(MixArgs a, const bf16* dy, bf16* dx, float* partial) {
  float query_grad[kVec][8] = {};
  for (int token = blockIdx.x; token < a.tokens; token += gridDim.x) {
    float score[kMaxSources], p[kMaxSources], rstd[kMaxSources], dp[kMaxSources], mean = 0;
    mix_scores(a, token, score, rstd);
    for (int r = 0; r < a.sources; ++r) p[r] = score[r];
    softmax(p, a.sources);
    const bf16* grad = dy + std::size_t(token) * a.width8 * 8;
    for (int r = 0; r < a.sources; ++r) {
      float dot = 0;
      for (int at = threadIdx.x; at < a.width8; at += kThreads) {
        const Vec8 x = load8(a.rows + mix_row(a, r, token) + at * 8), d = load8(grad + at * 8);
#pragma unroll
        for (int j = 0; j < 8; ++j) dot += f32(x.v[j]) * f32(d.v[j]);
      }
      dp[r] = block_sum(dot);
      mean += p[r] * dp[r];
    }
    for (int r = 0; r < a.sources; ++r) {
      const float ds = p[r] * (dp[r] - mean), pull = ds * score[r] * rstd[r] * rstd[r] / float(a.width8 * 8);
#pragma unroll
      for (int v = 0; v < kVec; ++v) {
        const int at = threadIdx.x + v * kThreads;
        if (at >= a.width8) continue;
        const Vec8 x = load8(a.rows + mix_row(a, r, token) + at * 8), d = load8(grad + at * 8);
        Vec8 o;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float xf = f32(x.v[j]);
          query_grad[v][j] += ds * rstd[r] * xf;
          o.v[j] = __float2bfloat16(p[r] * f32(d.v[j]) + ds * rstd[r] * a.query[at * 8 + j] - pull * xf);
        }
        store8(dx + mix_row(a, r, token) + at * 8, o);
      }
    }
  }
  write_partial<kVec>(query_grad, partial, a.width8);
}

struct NormBuffers {
  DeviceBuffer<bf16> x, dy, y, dx;
  DeviceBuffer<float> w, dw, partial;
  NormBuffers(Bench& b, std::size_t rows, std::size_t width, std::size_t sources = 1)
      : x(random_buffer<bf16>(sources * rows * width, b.next_seed())),
        dy(random_buffer<bf16>(rows * width, b.next_seed())),
        y(rows * width),
        dx(sources * rows * width),
        w(random_buffer<float>(width, b.next_seed(),
                               {.scale = sources > 1 ? 0.02f : 0.2f, .mean = sources > 1 ? 0.f : 1.f})),
        dw(width),
        partial(std::size_t(4 * b.sm_count()) * width) {
    y.poison();
    dx.poison();
    dw.poison();
  }
};

void norm_fwd(Bench& b, NormBuffers& n, int rows, int width) {
  const int width8 = width / 8;
  if (width8 <= 2 * kThreads)
    rms_forward<2><<<rows, kThreads, 0, b.stream()>>>(n.x.get(), n.w.get(), n.y.get(), width8);
  else if (width8 <= 4 * kThreads)
    rms_forward<4><<<rows, kThreads, 0, b.stream()>>>(n.x.get(), n.w.get(), n.y.get(), width8);
  else
    rms_forward<6><<<rows, kThreads, 0, b.stream()>>>(n.x.get(), n.w.get(), n.y.get(), width8);
}

void norm_bwd(Bench& b, NormBuffers& n, int rows, int width) {
  const int width8 = width / 8, grid = std::min(rows, 4 * b.sm_count());
  const auto launch = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, b.stream()>>>(n.x.get(), n.w.get(), n.dy.get(), n.dx.get(), n.partial.get(), rows,
                                              width8);
    sum_partials<<<width / 32, kThreads, 0, b.stream()>>>(n.partial.get(), n.dw.get(), grid, width);
  };
  if (width8 <= 2 * kThreads)
    launch(rms_backward<2>);
  else if (width8 <= 4 * kThreads)
    launch(rms_backward<4>);
  else
    launch(rms_backward<6>);
}

void mix_fwd(Bench& b, NormBuffers& n, int sources, int tokens, int width) {
  mix_forward<<<tokens, kThreads, 0, b.stream()>>>({n.x.get(), n.w.get(), sources, tokens, width / 8}, n.y.get());
}

void mix_bwd(Bench& b, NormBuffers& n, int sources, int tokens, int width) {
  const int grid = std::min(tokens, 4 * b.sm_count());
  mix_backward<4><<<grid, kThreads, 0, b.stream()>>>({n.x.get(), n.w.get(), sources, tokens, width / 8}, n.dy.get(),
                                                     n.dx.get(), n.partial.get());
  sum_partials<<<width / 32, kThreads, 0, b.stream()>>>(n.partial.get(), n.dw.get(), grid, width);
}

void check_norm(Bench& b, int width) {
  const int rows = 700;
  NormBuffers n(b, rows, width);
  norm_fwd(b, n, rows, width);
  norm_bwd(b, n, rows, width);
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto x = download_double(n.x), dy = download_double(n.dy), w = download_double(n.w);
  std::vector<double> y(x.size()), dx(x.size()), dw(w.size(), 0.0);
  for (int r = 0; r < rows; ++r) {
    const std::size_t at = std::size_t(r) * width;
    double square = 0, dot = 0;
    for (int i = 0; i < width; ++i) square += x[at + i] * x[at + i], dot += x[at + i] * dy[at + i] * w[i];
    const double rstd = 1 / std::sqrt(square / width + kEps);
    for (int i = 0; i < width; ++i) {
      y[at + i] = x[at + i] * rstd * w[i];
      dx[at + i] = dy[at + i] * w[i] * rstd - x[at + i] * dot * rstd * rstd * rstd / width;
      dw[i] += dy[at + i] * x[at + i] * rstd;
    }
  }
  b.verify("rms_norm fwd", relative_error(n.y.download(), y), 5e-3);
  b.verify("rms_norm bwd dx", relative_error(n.dx.download(), dx), 5e-3);
  b.verify("rms_norm bwd dw", relative_error(n.dw.download(), dw), 1e-4);
}

void check_mix(Bench& b, int sources) {
  const int tokens = 600, width = 7168;
  NormBuffers n(b, tokens, width, sources);
  mix_fwd(b, n, sources, tokens, width);
  mix_bwd(b, n, sources, tokens, width);
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto x = download_double(n.x), dy = download_double(n.dy), c = download_double(n.w);
  std::vector<double> y(n.y.size(), 0.0), dx(x.size()), dc(c.size(), 0.0);
  for (int t = 0; t < tokens; ++t) {
    std::vector<double> s(sources), p(sources), rstd(sources), dp(sources, 0.0);
    double sum = 0, mean = 0;
    const auto at = [&](int r) { return (std::size_t(r) * tokens + t) * width; };
    for (int r = 0; r < sources; ++r) {
      double square = 0, dot = 0;
      for (int i = 0; i < width; ++i) {
        square += x[at(r) + i] * x[at(r) + i];
        dot += x[at(r) + i] * c[i];
        dp[r] += x[at(r) + i] * dy[std::size_t(t) * width + i];
      }
      rstd[r] = 1 / std::sqrt(square / width + kEps);
      s[r] = dot * rstd[r];
      sum += p[r] = std::exp(s[r]);
    }
    for (int r = 0; r < sources; ++r) mean += (p[r] /= sum) * dp[r];
    for (int r = 0; r < sources; ++r)
      for (int i = 0; i < width; ++i) {
        const double xi = x[at(r) + i], ds = p[r] * (dp[r] - mean);
        y[std::size_t(t) * width + i] += p[r] * xi;
        dx[at(r) + i] = p[r] * dy[std::size_t(t) * width + i] + ds * rstd[r] * (c[i] - s[r] * rstd[r] * xi / width);
        dc[i] += ds * rstd[r] * xi;
      }
  }
  b.verify(concat("attnres_mix fwd, sources ", sources), relative_error(n.y.download(), y), 5e-3);
  b.verify(concat("attnres_mix bwd dx, sources ", sources), relative_error(n.dx.download(), dx), 5e-3);
  b.verify(concat("attnres_mix bwd dquery, sources ", sources), relative_error(n.dw.download(), dc), 1e-3);
}

}  // namespace

void run_norms(Bench& b) {
  for (const int width : {3584, 7168, 12288}) check_norm(b, width);
  for (const int sources : {2, 5, 9}) check_mix(b, sources);
  for (const int rows : {1024, 8192, 16384})
    for (const int width : {3584, 7168, 12288}) {
      if (b.options().check_only || (b.options().quick && width != 7168)) continue;
      NormBuffers n(b, rows, width);
      const double e = double(rows) * width;
      const std::string params = concat("M=", rows, ";D=", width);
      b.time({"mem", "k3_rms_norm", "fwd", "bf16", params, 4 * e, 4 * e}, [&] { norm_fwd(b, n, rows, width); });
      b.time({"mem", "k3_rms_norm", "bwd", "bf16", params, 8 * e, 6 * e}, [&] { norm_bwd(b, n, rows, width); });
    }
  for (const int sources : {2, 3, 5, 9}) {
    const int tokens = 8192, width = 7168;
    if (b.options().check_only || (b.options().quick && sources != 5)) continue;
    NormBuffers n(b, tokens, width, sources);
    const double e = double(tokens) * width;
    const std::string params = concat("M=", tokens, ";D=", width, ";sources=", sources);
    b.time({"mem", "k3_attnres_mix", "fwd", "bf16", params, 6 * e * sources, 2 * e * (sources + 1)},
           [&] { mix_fwd(b, n, sources, tokens, width); });
    b.time({"mem", "k3_attnres_mix", "bwd", "bf16", params, 12 * e * sources, 2 * e * (2 * sources + 1)},
           [&] { mix_bwd(b, n, sources, tokens, width); });
  }
}

}  // namespace k3sim
