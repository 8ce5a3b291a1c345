// Running work on several streams or several GPUs and timing it as one piece.
//   Fork/join: side streams start after, and are waited for by, the main stream, so that its events time everything.
//   wall_time_us: starts work on every GPU from one host thread and takes the time until the last one is done; each GPU
//   needs about 5 us of the host, so it is meant for work of 100 us and more.
// Source: CUDA events and streams; see bench.h for the single-GPU clock.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "calibrate/kernels/cuda_check.h"

namespace k3sim {

class Fork {
 public:
  Fork(cudaStream_t main, std::vector<cudaStream_t> sides)
      : main_(main), sides_(std::move(sides)), ends_(sides_.size()) {
    K3_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
    for (auto& e : ends_) K3_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  }
  ~Fork() {
    cudaEventDestroy(begin_);
    for (auto& e : ends_) cudaEventDestroy(e);
  }
  void begin() const {
    K3_CUDA(cudaEventRecord(begin_, main_));
    for (const auto s : sides_) K3_CUDA(cudaStreamWaitEvent(s, begin_, 0));
  }
  void join() const {
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      K3_CUDA(cudaEventRecord(ends_[i], sides_[i]));
      K3_CUDA(cudaStreamWaitEvent(main_, ends_[i], 0));
    }
  }

 private:
  cudaStream_t main_;
  std::vector<cudaStream_t> sides_;
  std::vector<cudaEvent_t> ends_;
  cudaEvent_t begin_ = nullptr;
};

inline void synchronize_all(int gpus) {
  for (int d = 0; d < gpus; ++d) {
    K3_CUDA(cudaSetDevice(d));
    K3_CUDA(cudaDeviceSynchronize());
  }
}

// `start(d)` enqueues the work of GPU d, which is the current device then; GPU 0 is current afterwards.
inline double wall_time_us(int gpus, const std::function<void(int)>& start) {
  synchronize_all(gpus);
  const auto begin = std::chrono::steady_clock::now();
  for (int d = 0; d < gpus; ++d) {
    K3_CUDA(cudaSetDevice(d));
    start(d);
  }
  synchronize_all(gpus);
  const auto end = std::chrono::steady_clock::now();
  K3_CUDA(cudaSetDevice(0));
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

// Lets every GPU read and write every other GPU's memory. False when a pair cannot.
bool enable_peer_access(int gpus);

}  // namespace k3sim
