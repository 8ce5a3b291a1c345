// Clock and bookkeeping of the kernel families; see the header.
// Source: engine-design.md section 14.6.
#include "calibrate/kernels/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace k3sim {

Bench::Bench(BenchOptions options, MachineFacts machine, MeasurementWriter* writer)
    : options_(options), machine_(machine), writer_(writer), seed_(options.seed * 1'000'003) {
  int l2 = 0;
  K3_CUDA(cudaSetDevice(0));
  K3_CUDA(cudaDeviceGetAttribute(&sm_count_, cudaDevAttrMultiProcessorCount, 0));
  K3_CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
  K3_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  K3_CUDA(cudaEventCreate(&start_));
  K3_CUDA(cudaEventCreate(&stop_));
  flush_ = DeviceBuffer<unsigned char>(std::max<std::size_t>(std::size_t(4) * std::size_t(l2), 256u << 20));
}

Bench::~Bench() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
  cudaStreamDestroy(stream_);
}

void Bench::verify(const std::string& what, double error, double limit) {
  ++checks_;
  const bool good = std::isfinite(error) && error <= limit;
  const std::string verdict = concat(what, ": relative error ", error, " (limit ", limit, ")");
  if (options_.check_only || !good) std::fputs(concat(good ? "ok    " : "WRONG ", verdict, "\n").c_str(), stderr);
  if (!good) throw WrongResult(verdict);
}

bool Bench::skip(const KernelId& id) const {
  return options_.check_only || writer_ == nullptr || writer_->done(id);
}

StopRule Bench::rule() const {
  if (options_.quick) return {.min_reps = 20, .max_total_us = 60'000};
  return {.min_reps = 60, .max_total_us = 150'000};
}

double Bench::timed_once(const std::function<void()>& launch, Cache cache) {
  if (cache == Cache::kCold) K3_CUDA(cudaMemsetAsync(flush_.get(), 0x5a, flush_.bytes(), stream_));
  K3_CUDA(cudaEventRecord(start_, stream_));
  launch();
  K3_CUDA(cudaEventRecord(stop_, stream_));
  K3_CUDA(cudaEventSynchronize(stop_));
  float ms = 0;
  K3_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
  return double(ms) * 1e3;
}

void Bench::time(const KernelId& id, const std::function<void()>& launch, Cache cache) {
  time_with(id, [&] { return timed_once(launch, cache); });
}

void Bench::time_with(const KernelId& id, const std::function<double()>& sample) {
  if (skip(id)) return;
  // Long enough for clocks and power to settle on this kernel: the flush between repeats counts as load too.
  const std::chrono::duration<double> settle(options_.quick ? 0.005 : 0.040);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3 || std::chrono::steady_clock::now() - begin < settle; ++i) sample();
  RepeatUntilStable repeat(rule());
  while (!repeat.finished()) repeat.add(sample());
  K3_CUDA(cudaGetLastError());
  const Summary s = repeat.summary();
  writer_->add({id, s.median_us, s.p20_us, s.p80_us, s.reps});
}

void Bench::note(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
  if (writer_ != nullptr) writer_->add_note(text);
}

}  // namespace k3sim
