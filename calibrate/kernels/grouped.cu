// Grouped GEMM family: the expert projections of K3 (gate+up 3584 -> 6144, down 3072 -> 3584) over 4 to 112 local
// experts, uniform and Zipf counts; this project's kernel, and one cuBLASLt product per expert in a loop.
//   flops = 2 rows N K; bytes = every row in and out and every weight matrix once.
// Source: k3-facts.md section 1.2, hardware.md section 5.2; parameters as in the shipped measurement file.
#include "calibrate/kernels/grouped_gemm.cuh"

#include <memory>

#include "calibrate/harness/shapes.h"
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

DeviceBuffer<int> offsets_of(const std::vector<int>& counts) {
  std::vector<int> offsets(1, 0);
  for (const int c : counts) offsets.push_back(offsets.back() + c);
  DeviceBuffer<int> out(offsets.size());
  out.upload(offsets);
  return out;
}

void check(Bench& b, const std::vector<int>& counts, int n, int k) {
  const auto offsets = offsets_of(counts);
  const auto host_offsets = offsets.download();
  const int groups = int(counts.size()), rows = host_offsets.back();
  const GroupedShape s{offsets.get(), groups, rows, n, k};
  const auto x = random_buffer<bf16>(std::size_t(rows) * k, b.next_seed());
  const auto w = random_buffer<bf16>(std::size_t(groups) * n * k, b.next_seed(), {.scale = 0.05f});
  const auto dy = random_buffer<bf16>(std::size_t(rows) * n, b.next_seed());
  DeviceBuffer<bf16> y(dy.size()), dx(x.size()), dw(w.size());
  y.poison(), dx.poison(), dw.poison();
  grouped_forward(s, x.get(), w.get(), y.get(), b.stream());
  grouped_input_grad(s, dy.get(), w.get(), dx.get(), b.stream());
  grouped_weight_grad(s, dy.get(), x.get(), dw.get(), b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto hx = download_double(x), hw = download_double(w), hd = download_double(dy);
  std::vector<double> ry(y.size(), 0.0), rx(x.size(), 0.0), rw(w.size(), 0.0);
  for (int g = 0; g < groups; ++g)
    for (int r = host_offsets[g]; r < host_offsets[g + 1]; ++r)
      for (int i = 0; i < n; ++i) {
        const double* wi = &hw[(std::size_t(g) * n + i) * k];
        double* rwi = &rw[(std::size_t(g) * n + i) * k];
        const double d = hd[std::size_t(r) * n + i];
        double sum = 0;
        for (int j = 0; j < k; ++j) {
          sum += hx[std::size_t(r) * k + j] * wi[j];
          rx[std::size_t(r) * k + j] += d * wi[j];
          rwi[j] += d * hx[std::size_t(r) * k + j];
        }
        ry[std::size_t(r) * n + i] = sum;
      }
  b.verify("grouped fwd", relative_error(y.download(), ry), 5e-3);
  b.verify("grouped dgrad", relative_error(dx.download(), rx), 5e-3);
  b.verify("grouped wgrad", relative_error(dw.download(), rw), 5e-3);
}

struct Case {
  int groups, rows;
  Skew skew;
};

std::vector<Case> cases(bool quick) {
  if (quick) return {{28, 28672, Skew::kUniform}, {28, 14336, Skew::kZipf}};
  std::vector<Case> out;
  for (const int g : {4, 7, 14, 28, 56, 112})
    for (const int per_expert : {64, 256, 1024, 2048}) {
      if (g * per_expert > 131072) continue;
      out.push_back({g, g * per_expert, Skew::kUniform});
      if (per_expert == 256 || per_expert == 1024) out.push_back({g, g * per_expert, Skew::kZipf});
    }
  return out;
}

struct Projection {
  const char* name;
  int n, k;
};

void run_case(Bench& b, const Case& c, const Projection& p) {
  const auto counts = group_counts(c.groups, c.rows, c.skew);
  const auto offsets = offsets_of(counts);
  const GroupedShape s{offsets.get(), c.groups, c.rows, p.n, p.k};
  const std::string params =
      concat("G=", c.groups, ";tokens=", c.rows, ";N=", p.n, ";K=", p.k, ";skew=", skew_name(c.skew));
  const double rows = c.rows, n = p.n, k = p.k, flops = 2 * rows * n * k;
  const double bytes = 2 * (rows * k + rows * n + double(c.groups) * n * k);
  const std::string own = concat("k3_grouped_", p.name);
  if (b.skip({"grouped", own, "wgrad", "bf16", params})) return;
  const auto x = random_buffer<bf16>(std::size_t(c.rows) * p.k, b.next_seed());
  const auto w = random_buffer<bf16>(std::size_t(c.groups) * p.n * p.k, b.next_seed(), {.scale = 0.02f});
  auto y = random_buffer<bf16>(std::size_t(c.rows) * p.n, b.next_seed());
  DeviceBuffer<bf16> dx(x.size()), dw(w.size());
  b.time({"grouped", own, "fwd", "bf16", params, flops, bytes},
         [&] { grouped_forward(s, x.get(), w.get(), y.get(), b.stream()); });
  b.time({"grouped", own, "dgrad", "bf16", params, flops, bytes},
         [&] { grouped_input_grad(s, y.get(), w.get(), dx.get(), b.stream()); });
  const std::string loop = concat("cublaslt_loop_", p.name);
  std::vector<std::unique_ptr<LtMatmul>> products;
  for (const int m : counts)
    products.push_back(std::make_unique<LtMatmul>(LtShape{.m = m, .n = p.n, .k = p.k, .b_transposed = true}));
  b.time({"grouped", loop, "fwd", "bf16", params, flops, bytes}, [&] {
    std::size_t row = 0;
    for (std::size_t g = 0; g < counts.size(); row += counts[g++])
      products[g]->run(x.get() + row * p.k, w.get() + g * p.n * p.k, nullptr, y.get() + row * p.n, b.stream());
  });
  b.time({"grouped", own, "wgrad", "bf16", params, flops, bytes},
         [&] { grouped_weight_grad(s, y.get(), x.get(), dw.get(), b.stream()); });
}

}  // namespace

void run_grouped(Bench& b) {
  check(b, {130, 0, 7, 256, 1}, 256, 128);
  check(b, {65, 64, 63, 200, 0,  0,  3,  129, 5,  31, 32, 33, 1,  2,  3,  4,  5, 6,
            7,  8,  9,  10,  11, 12, 13, 14,  15, 16, 17, 18, 19, 20, 21, 22, 23},
        128, 128);
  if (b.options().check_only) return;
  for (const Case& c : cases(b.options().quick)) {
    run_case(b, c, {"up", 6144, 3584});
    run_case(b, c, {"down", 3584, 3072});
  }
}

}  // namespace k3sim
