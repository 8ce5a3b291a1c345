// Elementwise kernels: device copy (the driver's own), add, and SiTU-GLU forward and backward.
//   SiTU-GLU: out = [b1 tanh(g / b1) sigmoid(g)] * [b2 tanh(u / b2)], b1 = 4, b2 = 25, in FP32; g and u are the two
//   halves of a row of the fused gate/up projection. Forward 6 bytes per output element, backward 10.
// Source: k3-facts.md section 1.2 (SiTU-GLU), hardware.md section 5.4. copy_d2d is comparable with the
// shipped file; k3_* rows are this project's kernels.
#include <cmath>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/random_fill.h"
#include "calibrate/kernels/situ_glu.cuh"

namespace k3sim {

namespace {

__global__ void add_kernel(const bf16* a, const bf16* b, bf16* out, std::size_t vectors) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const Vec8 x = load8(a + 8 * i), y = load8(b + 8 * i);
    Vec8 z;
#pragma unroll
    for (int j = 0; j < 8; ++j) z.v[j] = __float2bfloat16(f32(x.v[j]) + f32(y.v[j]));
    store8(out + 8 * i, z);
  }
}

unsigned grid_for(std::size_t items) {
  return unsigned(std::min<std::size_t>((items + 255) / 256, 132 * 32));
}

double situ(double g, double u) {
  return 4 * std::tanh(g / 4) / (1 + std::exp(-g)) * 25 * std::tanh(u / 25);
}

void check_situ(Bench& bench) {
  const int rows = 61, width = 384;
  const auto gu = random_buffer<bf16>(std::size_t(rows) * 2 * width, bench.next_seed(), {.scale = 3.0f});
  const auto dy = random_buffer<bf16>(std::size_t(rows) * width, bench.next_seed());
  DeviceBuffer<bf16> out(dy.size()), dgu(gu.size());
  out.poison();
  dgu.poison();
  situ_glu_forward(gu.get(), out.get(), rows, width, bench.stream());
  situ_glu_backward(gu.get(), dy.get(), dgu.get(), rows, width, bench.stream());
  K3_CUDA(cudaStreamSynchronize(bench.stream()));
  const auto x = download_double(gu), d = download_double(dy);
  std::vector<double> want(dy.size()), want_d(gu.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) {
      const std::size_t g = std::size_t(r) * 2 * width + c, u = g + width, o = std::size_t(r) * width + c;
      const double h = 1e-5;
      want[o] = situ(x[g], x[u]);
      want_d[g] = d[o] * (situ(x[g] + h, x[u]) - situ(x[g] - h, x[u])) / (2 * h);
      want_d[u] = d[o] * (situ(x[g], x[u] + h) - situ(x[g], x[u] - h)) / (2 * h);
    }
  bench.verify("situ_glu fwd", relative_error(out.download(), want), 5e-3);
  bench.verify("situ_glu bwd", relative_error(dgu.download(), want_d), 5e-3);
}

void time_situ(Bench& bench) {
  for (const long long m : {1024LL, 16384LL, 65536LL, 131072LL}) {
    const long long d = 3072;
    if (bench.options().quick && m != 16384) continue;
    const auto gu = random_buffer<bf16>(std::size_t(m * 2 * d), bench.next_seed());
    const auto dy = random_buffer<bf16>(std::size_t(m * d), bench.next_seed());
    DeviceBuffer<bf16> out(dy.size()), dgu(gu.size());
    const std::string params = concat("M=", m, ";D=", d);
    bench.time({"mem", "k3_situ_glu", "fwd", "bf16", params, 0, 6.0 * double(m * d)},
               [&] { situ_glu_forward(gu.get(), out.get(), int(m), int(d), bench.stream()); });
    bench.time({"mem", "k3_situ_glu", "bwd", "bf16", params, 0, 10.0 * double(m * d)},
               [&] { situ_glu_backward(gu.get(), dy.get(), dgu.get(), int(m), int(d), bench.stream()); });
  }
}

void check_add(Bench& bench) {
  const std::size_t n = 1 << 20;
  const auto a = random_buffer<bf16>(n, bench.next_seed()), b = random_buffer<bf16>(n, bench.next_seed());
  DeviceBuffer<bf16> out(n);
  out.poison();
  add_kernel<<<grid_for(n / 8), 256, 0, bench.stream()>>>(a.get(), b.get(), out.get(), n / 8);
  K3_CUDA(cudaStreamSynchronize(bench.stream()));
  auto x = download_double(a), y = download_double(b);
  for (std::size_t i = 0; i < n; ++i) x[i] += y[i];
  bench.verify("add", relative_error(out.download(), x), 5e-3);
}

void time_copy_and_add(Bench& bench) {
  const std::size_t largest = bench.options().check_only ? 1 << 20 : std::size_t(1) << 30;
  check_add(bench);
  const auto a = random_buffer<bf16>(largest, bench.next_seed());
  const auto b = random_buffer<bf16>(largest, bench.next_seed());
  DeviceBuffer<bf16> out(largest);
  for (std::size_t n = 1 << 20; n <= largest; n *= 4) {
    const double bytes = 2.0 * double(n);
    const std::string params = concat("n=", n);
    const auto copy = [&] {
      K3_CUDA(cudaMemcpyAsync(out.get(), a.get(), n * 2, cudaMemcpyDeviceToDevice, bench.stream()));
    };
    const auto add = [&] {
      add_kernel<<<grid_for(n / 8), 256, 0, bench.stream()>>>(a.get(), b.get(), out.get(), n / 8);
    };
    bench.time({"mem", "copy_d2d", "fwd", "bf16", params, 0, 2 * bytes}, copy);
    bench.time({"mem", "k3_add", "fwd", "bf16", params, double(n), 3 * bytes}, add);
    bench.time({"mem", "k3_copy_d2d_warm", "fwd", "bf16", params, 0, 2 * bytes}, copy, Cache::kWarm);
    bench.time({"mem", "k3_add_warm", "fwd", "bf16", params, double(n), 3 * bytes}, add, Cache::kWarm);
  }
}

}  // namespace

void run_elementwise(Bench& bench) {
  check_situ(bench);
  time_copy_and_add(bench);
  time_situ(bench);
}

}  // namespace k3sim
