// Slow-down of computing kernels while copies run beside them on the same GPU.
//   alone: GEMM 8192 x 12288 x 7168 eight times, or the KDA forward; during h2d_d2h: pinned copies in both directions
//   keep both copy engines busy; during d2d: device copies share HBM. The time is that of the computing stream alone.
// Every computation was checked by its own family (same code paths).
// Source: hardware.md section 3.6; parameters as in the shipped rows.
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/kda_core.cuh"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/multi_gpu.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

constexpr std::size_t kCopyBytes = 256u << 20;

struct Side {  // background traffic
  cudaStream_t up = nullptr, down = nullptr;
  void *host_in = nullptr, *host_out = nullptr;
  DeviceBuffer<unsigned char> a{std::size_t(1) << 30}, c{std::size_t(1) << 30};
  Side() {
    K3_CUDA(cudaHostAlloc(&host_in, kCopyBytes, 0));
    K3_CUDA(cudaHostAlloc(&host_out, kCopyBytes, 0));
    K3_CUDA(cudaMemset(a.get(), 0x41, a.bytes()));
    K3_CUDA(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    K3_CUDA(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
  }
  ~Side() {
    cudaStreamDestroy(up);
    cudaStreamDestroy(down);
    cudaFreeHost(host_in);
    cudaFreeHost(host_out);
  }
  void host_copies(int n) const {
    for (int i = 0; i < n; ++i) {
      K3_CUDA(cudaMemcpyAsync(a.get(), host_in, kCopyBytes, cudaMemcpyHostToDevice, up));
      K3_CUDA(cudaMemcpyAsync(host_out, c.get(), kCopyBytes, cudaMemcpyDeviceToHost, down));
    }
  }
  void device_copies(int n) const {
    for (int i = 0; i < n; ++i) K3_CUDA(cudaMemcpyAsync(c.get(), a.get(), a.bytes(), cudaMemcpyDeviceToDevice, up));
  }
};

struct Clock {
  cudaEvent_t begin = nullptr, end = nullptr;
  Clock() {
    K3_CUDA(cudaEventCreate(&begin));
    K3_CUDA(cudaEventCreate(&end));
  }
  ~Clock() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
};

// Time of `work` on the bench stream while `traffic` runs on the side streams.
double during(Bench& b, const Clock& clock, const std::function<void()>& traffic, const std::function<void()>& work) {
  K3_CUDA(cudaDeviceSynchronize());
  traffic();
  K3_CUDA(cudaEventRecord(clock.begin, b.stream()));
  work();
  K3_CUDA(cudaEventRecord(clock.end, b.stream()));
  K3_CUDA(cudaDeviceSynchronize());
  float ms = 0;
  K3_CUDA(cudaEventElapsedTime(&ms, clock.begin, clock.end));
  return double(ms) * 1e3;
}

struct Work {
  std::string name, params;
  double flops;
  std::function<void()> run;
  int host_copies;  // enough to outlast the work
  int device_copies;
};

void rows(Bench& b, const Side& side, const Work& w) {
  const Clock clock;
  b.time_with({"overlap", w.name + "_alone", "fwd", "bf16", w.params, w.flops, 0}, [&] {
    return during(
        b, clock, [] {}, w.run);
  });
  b.time_with({"overlap", w.name + "_during_h2d_d2h", "fwd", "bf16", w.params, w.flops, 0}, [&] {
    return during(
        b, clock, [&] { side.host_copies(w.host_copies); }, w.run);
  });
  b.time_with({"overlap", w.name + "_during_d2d", "fwd", "bf16",
               concat(w.params, ";copies=", w.device_copies, ";n=536870912"), w.flops, 0},
              [&] {
                return during(
                    b, clock, [&] { side.device_copies(w.device_copies); }, w.run);
              });
}

}  // namespace

void run_overlap(Bench& b) {
  if (b.options().check_only) return;
  const Side side;
  const int m = 8192, n = 12288, k = 7168;
  const auto x = random_buffer<bf16>(std::size_t(m) * k, b.next_seed());
  const auto w = random_buffer<bf16>(std::size_t(n) * k, b.next_seed());
  DeviceBuffer<bf16> y(std::size_t(m) * n);
  const LtMatmul product({.m = m, .n = n, .k = k, .b_transposed = true});
  rows(b, side,
       {"gemm", "M=8192;N=12288;K=7168;rep=8", 8 * 2.0 * m * n * k,
        [&] {
          for (int i = 0; i < 8; ++i) product.run(x.get(), w.get(), nullptr, y.get(), b.stream());
        },
        4, 3});
  const KdaShape s{1, 8192, 96};
  const auto q = random_buffer<bf16>(s.elements(), b.next_seed(), {.scale = 0.09f});
  const auto g = random_buffer<bf16>(s.elements(), b.next_seed(), {.scale = 0.01f, .mean = -0.1f});
  const auto beta =
      random_buffer<float>(std::size_t(s.tokens()) * s.heads, b.next_seed(), {.scale = 0.05f, .mean = 0.5f});
  DeviceBuffer<bf16> out(s.elements());
  KdaWorkspace work(s, false);
  rows(b, side,
       {"k3_kda", "T=8192;H=96;D=128;rep=4", 4 * 8192.0 * 96 * 117760,
        [&] {
          for (int i = 0; i < 4; ++i)
            kda_forward(s, {q.get(), q.get(), q.get(), g.get(), beta.get()}, work, out.get(), false, b.stream());
        },
        4, 10});
}

}  // namespace k3sim
