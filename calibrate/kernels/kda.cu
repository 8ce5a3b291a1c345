// KDA family: this project's chunked core, forward and backward, checked against the token-by-token recurrence and its
// reverse in double precision, then timed over tokens, heads and sequences.
//   params as in the shipped rows: T is the total over nseq sequences. bytes: q, k, v, g and the output once (10 D per
//   token and head); backward: those plus dO and four gradients. flops by k3-facts section 4.2 (report formula, chunk
//   16).
// Source: k3-facts.md section 4.
#include <cmath>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/kda_core.cuh"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

constexpr int kD = kKdaHead;

__global__ void make_gate(bf16* g, std::size_t n) {  // log-decay in [-5, 0], mostly near zero as in a trained model
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += std::size_t(gridDim.x) * blockDim.x)
    g[i] = __float2bfloat16(-5.0f / (1.0f + __expf(-2.0f * __bfloat162float(g[i]) + 3.0f)));
}

__global__ void make_beta(float* b, std::size_t n) {
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += std::size_t(gridDim.x) * blockDim.x)
    b[i] = 1.0f / (1.0f + __expf(-b[i]));
}

struct Tensors {
  KdaShape s;
  DeviceBuffer<bf16> q, k, v, g, out, dout, dq, dk, dv;
  DeviceBuffer<float> beta, dg, dbeta;
  KdaWorkspace work;

  Tensors(Bench& b, const KdaShape& shape, bool backward)
      : s(shape),
        q(random_buffer<bf16>(s.elements(), b.next_seed(), {.scale = 0.0884f})),
        k(random_buffer<bf16>(s.elements(), b.next_seed(), {.scale = 0.0884f})),
        v(random_buffer<bf16>(s.elements(), b.next_seed())),
        g(random_buffer<bf16>(s.elements(), b.next_seed())),
        out(s.elements()),
        beta(random_buffer<float>(std::size_t(s.tokens()) * s.heads, b.next_seed())),
        work(s, backward) {
    make_gate<<<1024, 256>>>(g.get(), g.size());
    make_beta<<<64, 256>>>(beta.get(), beta.size());
    out.poison();
    if (backward) {
      dout = random_buffer<bf16>(s.elements(), b.next_seed());
      for (auto* p : {&dq, &dk, &dv}) *p = DeviceBuffer<bf16>(s.elements()), p->poison();
      dg = DeviceBuffer<float>(s.elements()), dbeta = DeviceBuffer<float>(beta.size());
      dg.poison(), dbeta.poison();
    }
    K3_CUDA(cudaDeviceSynchronize());
  }
  KdaInputs inputs() const { return {q.get(), k.get(), v.get(), g.get(), beta.get()}; }
  KdaGradients gradients() const { return {dout.get(), dq.get(), dk.get(), dv.get(), dg.get(), dbeta.get()}; }
  void forward(bool keep, cudaStream_t stream) { kda_forward(s, inputs(), work, out.get(), keep, stream); }
  void backward(cudaStream_t stream) { kda_backward(s, inputs(), work, gradients(), stream); }
};

using Vec = std::vector<double>;
struct Reference {
  Vec q, k, v, g, beta, dout;  // what the kernel read
  Vec out, dq, dk, dv, dg, dbeta;
};

struct Position {
  std::size_t row, scalar;  // of [token][head][128] and [token][head]
};

// One sequence and head: forward keeps every state, then the reverse recurrence.
void run_head(Reference& r, int length, const std::function<Position(int)>& at) {
  const double scale = 1 / std::sqrt(double(kD));
  std::vector<Vec> states(length + 1, Vec(kD * kD, 0.0)), us(length, Vec(kD));
  for (int t = 0; t < length; ++t) {
    const auto [o, s] = at(t);
    Vec& next = states[t + 1];
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kD; ++j) next[i * kD + j] = std::exp(r.g[o + i]) * states[t][i * kD + j];
    for (int j = 0; j < kD; ++j) {
      double seen = 0;
      for (int i = 0; i < kD; ++i) seen += r.k[o + i] * next[i * kD + j];
      us[t][j] = r.beta[s] * (r.v[o + j] - seen);
    }
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kD; ++j) {
        next[i * kD + j] += r.k[o + i] * us[t][j];
        r.out[o + j] += scale * r.q[o + i] * next[i * kD + j];
      }
  }
  Vec ds(kD * kD, 0.0), du(kD);
  for (int t = length - 1; t >= 0; --t) {
    const auto [o, s] = at(t);
    const double beta = r.beta[s];
    std::fill(du.begin(), du.end(), 0.0);
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kD; ++j) {
        ds[i * kD + j] += scale * r.q[o + i] * r.dout[o + j];
        r.dq[o + i] += scale * states[t + 1][i * kD + j] * r.dout[o + j];
        r.dk[o + i] += ds[i * kD + j] * us[t][j];
        du[j] += ds[i * kD + j] * r.k[o + i];
      }
    for (int j = 0; j < kD; ++j) {
      r.dv[o + j] = beta * du[j];
      r.dbeta[s] += du[j] * us[t][j] / beta;
    }
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kD; ++j) {
        const double decayed = std::exp(r.g[o + i]) * states[t][i * kD + j];
        r.dk[o + i] -= decayed * beta * du[j];
        ds[i * kD + j] -= r.k[o + i] * beta * du[j];
        r.dg[o + i] += ds[i * kD + j] * decayed;
        ds[i * kD + j] *= std::exp(r.g[o + i]);
      }
  }
}

Reference reference(const Tensors& x) {
  const auto zeros = [&] { return Vec(x.s.elements(), 0.0); };
  Reference r{download_double(x.q),
              download_double(x.k),
              download_double(x.v),
              download_double(x.g),
              download_double(x.beta),
              download_double(x.dout),
              zeros(),
              zeros(),
              zeros(),
              zeros(),
              zeros(),
              Vec(x.beta.size(), 0.0)};
  for (int n = 0; n < x.s.sequences; ++n)
    for (int h = 0; h < x.s.heads; ++h)
      run_head(r, x.s.length, [&](int t) {
        const std::size_t scalar = (std::size_t(n) * x.s.length + t) * x.s.heads + h;
        return Position{scalar * kD, scalar};
      });
  return r;
}

void check(Bench& b, const KdaShape& s) {
  Tensors x(b, s, true);
  x.forward(true, b.stream());
  x.backward(b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const Reference want = reference(x);
  const std::string tag = concat("kda ", s.sequences, "x", s.length, " heads ", s.heads, " ");
  b.verify(tag + "out", relative_error(x.out.download(), want.out), 2e-2);
  b.verify(tag + "dq", relative_error(x.dq.download(), want.dq), 2e-2);
  b.verify(tag + "dk", relative_error(x.dk.download(), want.dk), 2e-2);
  b.verify(tag + "dv", relative_error(x.dv.download(), want.dv), 2e-2);
  b.verify(tag + "dg", relative_error(x.dg.download(), want.dg), 3e-2);
  b.verify(tag + "dbeta", relative_error(x.dbeta.download(), want.dbeta), 2e-2);
  x.out.poison();
  x.forward(false, b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  b.verify(tag + "out, nothing kept", relative_error(x.out.download(), want.out), 2e-2);
}

void time_shape(Bench& b, int tokens, int heads, int sequences) {
  const KdaShape s{sequences, tokens / sequences, heads};
  const double th = double(tokens) * heads;
  const std::string params = concat("T=", tokens, ";H=", heads, ";D=128;nseq=", sequences);
  const double flops = th * 117760;
  const KernelId fwd{"kda", "k3_kda", "fwd", "bf16", params, flops, th * 1280};
  const KernelId keep{"kda", "k3_kda_keep_states", "fwd", "bf16", params, flops, th * (1280 + 2048 + 256)};
  const KernelId bwd{"kda", "k3_kda", "bwd", "bf16", params, 2.5 * flops, th * (1280 + 4 * 256 + 256 + 4096)};
  if (b.skip(fwd) && b.skip(bwd)) return;
  Tensors x(b, s, true);
  b.time(fwd, [&] { x.forward(false, b.stream()); });
  b.time(keep, [&] { x.forward(true, b.stream()); });
  b.time(bwd, [&] { x.backward(b.stream()); });
}

}  // namespace

void run_kda(Bench& b) {
  check(b, {1, 16, 1});
  check(b, {1, 96, 2});
  check(b, {3, 64, 3});
  if (b.options().check_only) return;
  for (const int heads : {8, 16, 32, 64, 96})
    for (const int tokens : {1024, 4096, 8192, 16384}) {
      if (b.options().quick && (heads != 96 || tokens != 8192)) continue;
      time_shape(b, tokens, heads, 1);
      if (tokens == 4096 || tokens == 16384) time_shape(b, tokens, heads, 4);
    }
}

}  // namespace k3sim
