// Copies between host and device: pinned memory, each direction, both at once, and all GPUs of the host at once.
//   bytes is what moves in total; for "both at once" the sum of the two directions, for all GPUs the sum over GPUs.
// Source: hardware.md sections 1.4, 4.1, 7.2 (eight GPUs at once is the largest gap).
#include <cstring>
#include <memory>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/multi_gpu.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

struct Lane {  // one GPU with its two copy streams and pinned buffers
  int device;
  std::size_t bytes;
  unsigned char *host_in = nullptr, *host_out = nullptr;
  DeviceBuffer<unsigned char> in, out;
  cudaStream_t up = nullptr, down = nullptr;

  Lane(int d, std::size_t n) : device(d), bytes(n) {
    K3_CUDA(cudaSetDevice(device));
    K3_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&host_in), n, cudaHostAllocDefault));
    K3_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&host_out), n, cudaHostAllocDefault));
    for (std::size_t i = 0; i < n; i += 4096) host_in[i] = static_cast<unsigned char>(i >> 12);
    in = DeviceBuffer<unsigned char>(n), out = DeviceBuffer<unsigned char>(n);
    K3_CUDA(cudaMemset(out.get(), 0x3c, n));
    K3_CUDA(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    K3_CUDA(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
  }
  ~Lane() {
    cudaFreeHost(host_in);
    cudaFreeHost(host_out);
    cudaStreamDestroy(up);
    cudaStreamDestroy(down);
  }
  void to_device(std::size_t n, cudaStream_t s) const {
    K3_CUDA(cudaMemcpyAsync(in.get(), host_in, n, cudaMemcpyHostToDevice, s));
  }
  void to_host(std::size_t n, cudaStream_t s) const {
    K3_CUDA(cudaMemcpyAsync(host_out, out.get(), n, cudaMemcpyDeviceToHost, s));
  }
};

void check(Bench& b, const Lane& lane) {
  const std::size_t n = std::min<std::size_t>(lane.bytes, 1 << 20);
  K3_CUDA(cudaSetDevice(lane.device));
  lane.to_device(n, lane.up);
  lane.to_host(n, lane.down);
  K3_CUDA(cudaDeviceSynchronize());
  std::vector<unsigned char> back(n);
  K3_CUDA(cudaMemcpy(back.data(), lane.in.get(), n, cudaMemcpyDeviceToHost));
  const bool good =
      std::memcmp(back.data(), lane.host_in, n) == 0 && lane.host_out[0] == 0x3c && lane.host_out[n - 1] == 0x3c;
  b.verify(concat("host copies, GPU ", lane.device), good ? 0 : 1, 0);
}

void single_gpu(Bench& b, const Lane& lane, std::size_t n) {
  const double bytes = double(n);
  const std::string params = concat("bytes=", n);
  b.time(
      {"copy", "h2d_pinned", "fwd", "u8", params, 0, bytes}, [&] { lane.to_device(n, b.stream()); }, Cache::kWarm);
  b.time(
      {"copy", "d2h_pinned", "fwd", "u8", params, 0, bytes}, [&] { lane.to_host(n, b.stream()); }, Cache::kWarm);
  const Fork fork(b.stream(), {lane.up, lane.down});
  b.time(
      {"copy", "h2d_d2h_concurrent", "fwd", "u8", params, 0, 2 * bytes},
      [&] {
        fork.begin();
        lane.to_device(n, lane.up);
        lane.to_host(n, lane.down);
        fork.join();
      },
      Cache::kWarm);
}

void all_gpus(Bench& b, const std::vector<std::unique_ptr<Lane>>& lanes, std::size_t n) {
  struct Mode {
    const char* name;
    bool up, down;
  };
  for (const Mode mode : {Mode{"h2d_pinned_all_gpus", true, false}, Mode{"d2h_pinned_all_gpus", false, true},
                          Mode{"h2d_d2h_all_gpus", true, true}}) {
    const double total = double(n) * double(lanes.size()) * (mode.up && mode.down ? 2 : 1);
    b.time_with({"copy", mode.name, "fwd", "u8", concat("gpus=", lanes.size(), ";bytes=", n), 0, total}, [&] {
      return wall_time_us(int(lanes.size()), [&](int d) {
        if (mode.up) lanes[d]->to_device(n, lanes[d]->up);
        if (mode.down) lanes[d]->to_host(n, lanes[d]->down);
      });
    });
  }
}

}  // namespace

void run_copies(Bench& b) {
  const std::size_t largest = b.options().check_only ? 1 << 20 : 256u << 20;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int d = 0; d < b.options().gpus; ++d) {
    lanes.push_back(std::make_unique<Lane>(d, largest));
    check(b, *lanes.back());
  }
  K3_CUDA(cudaSetDevice(0));
  if (b.options().check_only) return;
  for (const std::size_t n :
       {std::size_t(1) << 20, std::size_t(8) << 20, std::size_t(64) << 20, std::size_t(256) << 20}) {
    single_gpu(b, *lanes[0], n);
    if (lanes.size() > 1) all_gpus(b, lanes, n);
  }
  K3_CUDA(cudaSetDevice(0));
}

}  // namespace k3sim
