// Launch cost: one empty kernel, 200 small kernels one after the other, the same 200 as a CUDA graph, and what the host
// pays per launch.
// Source: hardware.md section 5.5.
#include <chrono>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"

namespace k3sim {

namespace {

constexpr int kKernels = 200;

__global__ void empty_kernel() {}
__global__ void small_kernel(float* x) {
  x[threadIdx.x] += 1.0f;
}

cudaGraphExec_t capture(float* x, cudaStream_t s) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  K3_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kKernels; ++i) small_kernel<<<1, 32, 0, s>>>(x);
  K3_CUDA(cudaStreamEndCapture(s, &graph));
  K3_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  K3_CUDA(cudaGraphDestroy(graph));
  return exec;
}

}  // namespace

void run_launch(Bench& b) {
  DeviceBuffer<float> x(32);
  x.zero();
  const cudaGraphExec_t graph = capture(x.get(), b.stream());
  K3_CUDA(cudaGraphLaunch(graph, b.stream()));
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  b.verify("200 kernels in a graph", relative_error(x.download(), std::vector<float>(32, float(kKernels))), 0);
  const auto loop = [&] {
    for (int i = 0; i < kKernels; ++i) small_kernel<<<1, 32, 0, b.stream()>>>(x.get());
  };
  b.time(
      {"launch", "k3_empty_kernel", "fwd", "fp32", "", 0, 0}, [&] { empty_kernel<<<1, 32, 0, b.stream()>>>(); },
      Cache::kWarm);
  b.time({"launch", "k3_small_kernels_stream", "fwd", "fp32", "n=200", 0, 0}, loop, Cache::kWarm);
  b.time(
      {"launch", "k3_small_kernels_graph", "fwd", "fp32", "n=200", 0, 0},
      [&] { K3_CUDA(cudaGraphLaunch(graph, b.stream())); }, Cache::kWarm);
  b.time_with({"launch", "k3_host_per_launch", "fwd", "fp32", "n=200", 0, 0}, [&] {
    K3_CUDA(cudaStreamSynchronize(b.stream()));
    const auto begin = std::chrono::steady_clock::now();
    loop();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
    return spent.count() / kKernels;
  });
  K3_CUDA(cudaGraphExecDestroy(graph));
}

}  // namespace k3sim
