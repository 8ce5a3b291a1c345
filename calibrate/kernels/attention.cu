// Softmax attention family with MLA head sizes, forward and backward, causal; checked on a small case in double
// precision.
//   flops count the causal half: B H S^2 (192 + 128) forward, 2.5 times that backward (as in the shipped rows).
// Source: k3-facts.md sections 1.2, 4.8.
#include <cmath>

#include "calibrate/kernels/attention_core.cuh"
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

struct Tensors {
  AttentionShape s;
  DeviceBuffer<bf16> q, k, v, out, dout, dk, dv;
  DeviceBuffer<float> lse, delta, dq;

  Tensors(Bench& b, int batch_heads, int tokens) : s{batch_heads, tokens} {
    const std::size_t rows = std::size_t(batch_heads) * tokens;
    q = random_buffer<bf16>(rows * kQkWidth, b.next_seed()), k = random_buffer<bf16>(rows * kQkWidth, b.next_seed());
    v = random_buffer<bf16>(rows * kVWidth, b.next_seed()), dout = random_buffer<bf16>(rows * kVWidth, b.next_seed());
    out = DeviceBuffer<bf16>(rows * kVWidth), dv = DeviceBuffer<bf16>(rows * kVWidth),
    dk = DeviceBuffer<bf16>(rows * kQkWidth);
    lse = DeviceBuffer<float>(rows), delta = DeviceBuffer<float>(rows), dq = DeviceBuffer<float>(rows * kQkWidth);
    out.poison(), dv.poison(), dk.poison(), lse.poison(), dq.poison();
  }
  AttentionTensors tensors() const { return {q.get(), k.get(), v.get(), out.get(), lse.get()}; }
  void forward(cudaStream_t stream) { attention_forward(s, tensors(), stream); }
  void backward(cudaStream_t stream) {
    attention_backward(s, tensors(), {dout.get(), delta.get(), dq.get(), dk.get(), dv.get()}, stream);
  }
};

struct Reference {
  std::vector<double> out, dq, dk, dv;
};

void reference_row(const Tensors& x, const std::vector<double>& q, const std::vector<double>& k,
                   const std::vector<double>& v, const std::vector<double>& dout, std::size_t head, int i,
                   Reference& r) {
  const std::size_t qi = (head + i) * kQkWidth, oi = (head + i) * kVWidth;
  std::vector<double> p(i + 1), dp(i + 1, 0.0);
  double sum = 0, delta = 0;
  for (int j = 0; j <= i; ++j) {
    double s = 0;
    for (int c = 0; c < kQkWidth; ++c) s += q[qi + c] * k[(head + j) * kQkWidth + c];
    sum += p[j] = std::exp(s * x.s.scale);
  }
  for (int j = 0; j <= i; ++j) {
    p[j] /= sum;
    for (int c = 0; c < kVWidth; ++c) {
      r.out[oi + c] += p[j] * v[(head + j) * kVWidth + c];
      dp[j] += dout[oi + c] * v[(head + j) * kVWidth + c];
      r.dv[(head + j) * kVWidth + c] += p[j] * dout[oi + c];
    }
    delta += p[j] * dp[j];
  }
  for (int j = 0; j <= i; ++j)
    for (int c = 0; c < kQkWidth; ++c) {
      const double ds = p[j] * (dp[j] - delta) * x.s.scale;
      r.dq[qi + c] += ds * k[(head + j) * kQkWidth + c];
      r.dk[(head + j) * kQkWidth + c] += ds * q[qi + c];
    }
}

void check(Bench& b, int heads, int tokens) {
  Tensors x(b, heads, tokens);
  x.forward(b.stream());
  x.backward(b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto q = download_double(x.q), k = download_double(x.k), v = download_double(x.v),
             dout = download_double(x.dout);
  Reference r{std::vector<double>(x.out.size(), 0.0), std::vector<double>(x.q.size(), 0.0),
              std::vector<double>(x.k.size(), 0.0), std::vector<double>(x.v.size(), 0.0)};
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < tokens; ++i) reference_row(x, q, k, v, dout, std::size_t(h) * tokens, i, r);
  const std::string tag = concat("attention heads ", heads, " tokens ", tokens, " ");
  b.verify(tag + "out", relative_error(x.out.download(), r.out), 1e-2);
  b.verify(tag + "dq", relative_error(x.dq.download(), r.dq), 2e-2);
  b.verify(tag + "dk", relative_error(x.dk.download(), r.dk), 2e-2);
  b.verify(tag + "dv", relative_error(x.dv.download(), r.dv), 2e-2);
}

}  // namespace

void run_attention(Bench& b) {
  check(b, 2, 256);
  check(b, 3, 384);
  if (b.options().check_only) return;
  struct Size {
    int batch, heads, tokens;
  };
  for (const Size z :
       {Size{4, 64, 2048}, Size{2, 64, 4096}, Size{1, 64, 8192}, Size{1, 96, 8192}, Size{1, 16, 16384}}) {
    if (b.options().quick && z.tokens != 4096) continue;
    Tensors x(b, z.batch * z.heads, z.tokens);
    const double flops = double(z.batch) * z.heads * double(z.tokens) * z.tokens * (kQkWidth + kVWidth);
    const std::string params = concat("B=", z.batch, ";H=", z.heads, ";S=", z.tokens, ";dqk=192;dv=128");
    b.time({"attn", "k3_attention_mma", "fwd", "bf16", params, flops, 0}, [&] { x.forward(b.stream()); });
    b.time({"attn", "k3_attention_mma", "bwd", "bf16", params, 2.5 * flops, 0}, [&] { x.backward(b.stream()); });
  }
}

}  // namespace k3sim
