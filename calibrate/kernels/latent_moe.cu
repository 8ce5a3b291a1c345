// The LatentMoE expert path of one rank, forward and backward, as one timed unit:
//   latent = x Wd^T; rows = gather(latent); gu = grouped(rows, Wgu); h = SiTU-GLU(gu); e = grouped(h, Wdn);
//   z = combine(weight, e); y = z Wu^T; backward returns dx, the routing-weight gradient and all weight gradients.
//   Dense and expert products by cuBLASLt (one per expert), the rest by this project's kernels. Forward flops = 2 T (2
//   H L) + 2 T k (3 L I).
// Checked as a whole against a double-precision chain on small sizes.
// Source: k3-facts.md section 1.2 (LatentMoE: latent 3584, experts 3072, top 16; weight after the down projection).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/harness/shapes.h"
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/expert_products.h"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/moe_rows.cuh"
#include "calibrate/kernels/random_fill.h"
#include "calibrate/kernels/situ_glu.cuh"

namespace k3sim {

namespace {

struct Dims {
  int tokens, topk, experts, hidden, latent, inner;
  Skew skew = Skew::kUniform;
  int rows() const { return tokens * topk; }
};

// A routing with exactly the wanted counts: entries are dealt to experts in a fixed pseudo-random order.
struct HostRouting {
  std::vector<int> token_of, row_of, offsets;
};

HostRouting make_routing(const Dims& d) {
  HostRouting r;
  const auto counts = group_counts(d.experts, d.rows(), d.skew);
  r.offsets.assign(1, 0);
  for (const int c : counts) r.offsets.push_back(r.offsets.back() + c);
  r.token_of.resize(d.rows());
  r.row_of.resize(d.rows());
  unsigned long long step = 0x9e3779b1;
  while (std::gcd(step, (unsigned long long)d.rows()) != 1) ++step;
  for (int i = 0; i < d.rows(); ++i) {
    r.row_of[i] = int((unsigned long long)i * step % d.rows());
    r.token_of[r.row_of[i]] = i / d.topk;
  }
  return r;
}

struct Path {
  Dims d;
  HostRouting host;
  DeviceBuffer<int> token_of, row_of;
  DeviceBuffer<float> weight, dweight;
  DeviceBuffer<bf16> x, wd, wgu, wdn, wu;                      // inputs and weights
  DeviceBuffer<bf16> latent, rows, gu, h, e, z, y;             // forward
  DeviceBuffer<bf16> dy, dz, de, dh, dgu, drows, dlatent, dx;  // backward
  DeviceBuffer<bf16> dwd, dwgu, dwdn, dwu;
  LtMatmul down, up, up_dx, up_dw, down_dx, down_dw;
  ExpertProducts gate_up, expert_down;

  Path(Bench& b, const Dims& dims);
  Routing routing() const { return {token_of.get(), row_of.get(), weight.get(), d.tokens, d.topk}; }
  void forward(cudaStream_t s);
  void backward(cudaStream_t s);
};

template <class T>
DeviceBuffer<T> poisoned(std::size_t n) {
  DeviceBuffer<T> b(n);
  b.poison();
  return b;
}

Path::Path(Bench& b, const Dims& q)
    : d(q),
      host(make_routing(q)),
      token_of(host.token_of.size()),
      row_of(host.row_of.size()),
      down({.m = q.tokens, .n = q.latent, .k = q.hidden, .b_transposed = true}),
      up({.m = q.tokens, .n = q.hidden, .k = q.latent, .b_transposed = true}),
      up_dx({.m = q.tokens, .n = q.latent, .k = q.hidden}),
      up_dw({.m = q.hidden, .n = q.latent, .k = q.tokens, .a_transposed = true}),
      down_dx({.m = q.tokens, .n = q.hidden, .k = q.latent}),
      down_dw({.m = q.latent, .n = q.hidden, .k = q.tokens, .a_transposed = true}),
      gate_up(host.offsets, 2 * q.inner, q.latent),
      expert_down(host.offsets, q.latent, q.inner) {
  token_of.upload(host.token_of), row_of.upload(host.row_of);
  const std::size_t t = d.tokens, r = d.rows(), hid = d.hidden, l = d.latent, i = d.inner, g = d.experts;
  const auto random = [&](std::size_t n, double fan) {
    return random_buffer<bf16>(n, b.next_seed(), {.scale = float(1 / std::sqrt(fan))});
  };
  x = random(t * hid, 1), dy = random(t * hid, 1);
  wd = random(l * hid, double(hid)), wu = random(hid * l, double(l));
  wgu = random(g * 2 * i * l, double(l)), wdn = random(g * l * i, double(i));
  weight = random_buffer<float>(r, b.next_seed(), {.scale = 0.02f, .mean = 1.0f / float(d.topk)});
  dweight = poisoned<float>(r);
  for (auto* p : {&latent, &z, &dz, &dlatent}) *p = poisoned<bf16>(t * l);
  for (auto* p : {&rows, &e, &de, &drows}) *p = poisoned<bf16>(r * l);
  for (auto* p : {&gu, &dgu}) *p = poisoned<bf16>(r * 2 * i);
  for (auto* p : {&h, &dh}) *p = poisoned<bf16>(r * i);
  for (auto* p : {&y, &dx}) *p = poisoned<bf16>(t * hid);
  dwd = poisoned<bf16>(wd.size()), dwu = poisoned<bf16>(wu.size());
  dwgu = poisoned<bf16>(wgu.size()), dwdn = poisoned<bf16>(wdn.size());
}

void Path::forward(cudaStream_t s) {
  down.run(x.get(), wd.get(), nullptr, latent.get(), s);
  gather_rows(latent.get(), token_of.get(), rows.get(), d.rows(), d.latent, s);
  gate_up.forward(rows.get(), wgu.get(), gu.get(), s);
  situ_glu_forward(gu.get(), h.get(), d.rows(), d.inner, s);
  expert_down.forward(h.get(), wdn.get(), e.get(), s);
  combine_rows(e.get(), routing(), weight.get(), z.get(), d.latent, s);
  up.run(z.get(), wu.get(), nullptr, y.get(), s);
}

void Path::backward(cudaStream_t s) {
  up_dx.run(dy.get(), wu.get(), nullptr, dz.get(), s);
  up_dw.run(dy.get(), z.get(), nullptr, dwu.get(), s);
  combine_rows_backward(e.get(), dz.get(), routing(), de.get(), dweight.get(), d.latent, s);
  expert_down.input_grad(de.get(), wdn.get(), dh.get(), s);
  expert_down.weight_grad(de.get(), h.get(), dwdn.get(), s);
  situ_glu_backward(gu.get(), dh.get(), dgu.get(), d.rows(), d.inner, s);
  gate_up.input_grad(dgu.get(), wgu.get(), drows.get(), s);
  gate_up.weight_grad(dgu.get(), rows.get(), dwgu.get(), s);
  combine_rows(drows.get(), routing(), nullptr, dlatent.get(), d.latent, s);
  down_dx.run(dlatent.get(), wd.get(), nullptr, dx.get(), s);
  down_dw.run(dlatent.get(), x.get(), nullptr, dwd.get(), s);
}

// ---- double-precision reference ----
using Mat = std::vector<double>;

// out[m,n] += a[m,k] * b, b stored [n,k] (kT) or [k,n].
void product(const double* a, const double* b, double* out, int m, int n, int k, bool b_transposed) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[std::size_t(i) * k + l] * (b_transposed ? b[std::size_t(j) * k + l] : b[std::size_t(l) * n + j]);
      out[std::size_t(i) * n + j] += sum;
    }
}

// out[n,k] += a[m,n]^T b[m,k]
void outer(const double* a, const double* b, double* out, int m, int n, int k) {
  for (int r = 0; r < m; ++r)
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < k; ++j) out[std::size_t(i) * k + j] += a[std::size_t(r) * n + i] * b[std::size_t(r) * k + j];
}

double situ(double g, double u) {
  return 4 * std::tanh(g / 4) / (1 + std::exp(-g)) * 25 * std::tanh(u / 25);
}

struct Reference {
  Mat y, dx, dweight, dwd, dwgu, dwdn, dwu;
};

Reference reference(const Path& p) {
  const Dims& d = p.d;
  const int t = d.tokens, r = d.rows(), hid = d.hidden, l = d.latent, in = d.inner;
  const Mat x = download_double(p.x), wd = download_double(p.wd), wgu = download_double(p.wgu),
            wdn = download_double(p.wdn), wu = download_double(p.wu), weight = download_double(p.weight),
            dy = download_double(p.dy);
  const auto zeros = [](std::size_t n) { return Mat(n, 0.0); };
  Mat latent = zeros(p.latent.size()), rows = zeros(p.rows.size()), gu = zeros(p.gu.size()), h = zeros(p.h.size()),
      e = zeros(p.e.size()), z = zeros(p.z.size()), dz = z, de = e, dh = h, dgu = gu, drows = rows, dlatent = latent;
  Reference out{zeros(p.y.size()), zeros(p.x.size()), zeros(weight.size()), zeros(wd.size()),
                zeros(wgu.size()), zeros(wdn.size()), zeros(wu.size())};
  product(x.data(), wd.data(), latent.data(), t, l, hid, true);
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < l; ++j) rows[std::size_t(i) * l + j] = latent[std::size_t(p.host.token_of[i]) * l + j];
  const auto each = [&](auto f) {
    for (int g = 0; g < d.experts; ++g) f(g, std::size_t(p.host.offsets[g]), p.host.offsets[g + 1] - p.host.offsets[g]);
  };
  each([&](int g, std::size_t o, int n) {
    product(&rows[o * l], &wgu[std::size_t(g) * 2 * in * l], &gu[o * 2 * in], n, 2 * in, l, true);
  });
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < in; ++j)
      h[std::size_t(i) * in + j] = situ(gu[std::size_t(i) * 2 * in + j], gu[std::size_t(i) * 2 * in + in + j]);
  each([&](int g, std::size_t o, int n) {
    product(&h[o * in], &wdn[std::size_t(g) * l * in], &e[o * l], n, l, in, true);
  });
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < l; ++j)
      z[std::size_t(i / d.topk) * l + j] += weight[i] * e[std::size_t(p.host.row_of[i]) * l + j];
  product(z.data(), wu.data(), out.y.data(), t, hid, l, true);
  product(dy.data(), wu.data(), dz.data(), t, l, hid, false);
  outer(dy.data(), z.data(), out.dwu.data(), t, hid, l);
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < l; ++j) {
      const std::size_t row = std::size_t(p.host.row_of[i]) * l + j;
      const double g = dz[std::size_t(i / d.topk) * l + j];
      de[row] = weight[i] * g;
      out.dweight[i] += g * e[row];
    }
  each([&](int g, std::size_t o, int n) {
    product(&de[o * l], &wdn[std::size_t(g) * l * in], &dh[o * in], n, in, l, false);
    outer(&de[o * l], &h[o * in], &out.dwdn[std::size_t(g) * l * in], n, l, in);
  });
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < in; ++j) {
      const std::size_t a = std::size_t(i) * 2 * in + j, b = a + in;
      const double s = 1e-5, dv = dh[std::size_t(i) * in + j];
      dgu[a] = dv * (situ(gu[a] + s, gu[b]) - situ(gu[a] - s, gu[b])) / (2 * s);
      dgu[b] = dv * (situ(gu[a], gu[b] + s) - situ(gu[a], gu[b] - s)) / (2 * s);
    }
  each([&](int g, std::size_t o, int n) {
    product(&dgu[o * 2 * in], &wgu[std::size_t(g) * 2 * in * l], &drows[o * l], n, l, 2 * in, false);
    outer(&dgu[o * 2 * in], &rows[o * l], &out.dwgu[std::size_t(g) * 2 * in * l], n, 2 * in, l);
  });
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < l; ++j) dlatent[std::size_t(p.host.token_of[i]) * l + j] += drows[std::size_t(i) * l + j];
  product(dlatent.data(), wd.data(), out.dx.data(), t, hid, l, false);
  outer(dlatent.data(), x.data(), out.dwd.data(), t, l, hid);
  return out;
}

void check(Bench& b, Skew skew) {
  Path p(b, {.tokens = 75, .topk = 4, .experts = 6, .hidden = 256, .latent = 128, .inner = 128, .skew = skew});
  p.forward(b.stream());
  p.backward(b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const Reference want = reference(p);
  const std::string tag = concat("latent_moe ", skew_name(skew), " ");
  b.verify(tag + "y", relative_error(p.y.download(), want.y), 1.5e-2);
  b.verify(tag + "dx", relative_error(p.dx.download(), want.dx), 2e-2);
  b.verify(tag + "dweight", relative_error(p.dweight.download(), want.dweight), 2e-2);
  b.verify(tag + "dwd", relative_error(p.dwd.download(), want.dwd), 2e-2);
  b.verify(tag + "dwgu", relative_error(p.dwgu.download(), want.dwgu), 2e-2);
  b.verify(tag + "dwdn", relative_error(p.dwdn.download(), want.dwdn), 2e-2);
  b.verify(tag + "dwu", relative_error(p.dwu.download(), want.dwu), 2e-2);
}

void time_rows(Bench& b, Path& p) {
  const double rows = p.d.rows(), l = p.d.latent, t = p.d.tokens;
  const std::string size = concat("rows=", p.d.rows(), ";D=", p.d.latent);
  b.time({"mem", "k3_gather_rows", "fwd", "bf16", size, 0, 4 * rows * l},
         [&] { gather_rows(p.latent.get(), p.token_of.get(), p.rows.get(), p.d.rows(), p.d.latent, b.stream()); });
  const std::string combine = concat(size, ";topk=", p.d.topk);
  b.time({"mem", "k3_combine_rows", "fwd", "bf16", combine, 2 * rows * l, 2 * (rows + t) * l},
         [&] { combine_rows(p.e.get(), p.routing(), p.weight.get(), p.z.get(), p.d.latent, b.stream()); });
  b.time({"mem", "k3_combine_rows", "bwd", "bf16", combine, 3 * rows * l, 2 * (2 * rows + t) * l}, [&] {
    combine_rows_backward(p.e.get(), p.dz.get(), p.routing(), p.de.get(), p.dweight.get(), p.d.latent, b.stream());
  });
}

}  // namespace

void run_latent_moe(Bench& b) {
  check(b, Skew::kUniform);
  check(b, Skew::kZipf);
  if (b.options().check_only) return;
  for (const Skew skew : {Skew::kUniform, Skew::kZipf})
    for (const int experts : {14, 28, 112})
      for (const int tokens : {1024, 4096, 8192}) {
        if (b.options().quick && (experts != 28 || tokens != 4096)) continue;
        const Dims d{tokens, 16, experts, 7168, 3584, 3072, skew};
        const std::string params =
            concat("tokens=", tokens, ";topk=16;G=", experts, ";H=7168;L=3584;I=3072;skew=", skew_name(skew));
        const double t = tokens, flops = 2 * t * (2.0 * 7168 * 3584) + 2 * t * 16 * (3.0 * 3584 * 3072);
        const double weights = 2 * (2.0 * 7168 * 3584 + experts * 3.0 * 3584 * 3072);
        const double moved = 2 * t * (2.0 * 7168 + 3.0 * 3584) + 2 * t * 16 * (4.0 * 3584 + 3.0 * 6144 / 2 + 3072);
        const KernelId fwd{"moe", "k3_latent_moe", "fwd", "bf16", params, flops, weights + moved};
        const KernelId bwd{"moe", "k3_latent_moe", "bwd", "bf16", params, 2 * flops, 2 * (weights + moved)};
        if (b.skip(fwd) && b.skip(bwd)) continue;
        Path p(b, d);
        b.time(fwd, [&] { p.forward(b.stream()); });
        b.time(bwd, [&] { p.backward(b.stream()); });
        if (skew == Skew::kUniform && experts == 28) time_rows(b, p);
      }
}

}  // namespace k3sim
