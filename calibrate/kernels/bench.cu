// Clock and bookkeeping of the kernel families; see the header.
// Source: engine-design.md section 14.6.
#include "calibrate/kernels/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace k3sim {

Bench::Bench(BenchOptions options, MachineFacts machine, MeasurementWriter* writer)
    : options_(options), machine_(machine), writer_(writer), seed_(options.seed * 1'000'003) {
  int l2 = 0;
  K3_CUDA(cudaSetDevice(0));
  K3_CUDA(cudaDeviceGetAttribute(&sm_count_, cudaDevAttrMultiProcessorCount, 0));
  K3_CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
  K3_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  flush_ = DeviceBuffer<unsigned char>(std::max<std::size_t>(std::size_t(4) * std::size_t(l2), 256u << 20));
}

Bench::~Bench() {
  for (const EventPair& e : events_) {
    cudaEventDestroy(e.start);
    cudaEventDestroy(e.stop);
  }
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

std::vector<double> Bench::timed_batch(const std::function<void()>& launch, Cache cache, std::size_t n) {
  while (events_.size() < n) {
    EventPair pair;
    K3_CUDA(cudaEventCreate(&pair.start));
    K3_CUDA(cudaEventCreate(&pair.stop));
    events_.push_back(pair);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (cache == Cache::kCold) K3_CUDA(cudaMemsetAsync(flush_.get(), 0x5a, flush_.bytes(), stream_));
    K3_CUDA(cudaEventRecord(events_[i].start, stream_));
    launch();
    K3_CUDA(cudaEventRecord(events_[i].stop, stream_));
  }
  K3_CUDA(cudaEventSynchronize(events_[n - 1].stop));
  std::vector<double> us(n);
  for (std::size_t i = 0; i < n; ++i) {
    float ms = 0;
    K3_CUDA(cudaEventElapsedTime(&ms, events_[i].start, events_[i].stop));
    us[i] = double(ms) * 1e3;
  }
  return us;
}

void Bench::warm_up(const std::function<void()>& run) const {
  // Every row starts rested: without the pause its clocks depend on how hot the rows before it left the GPU.
  if (!options_.sustained) std::this_thread::sleep_for(std::chrono::milliseconds(options_.quick ? 20 : 60));
  const std::chrono::duration<double> settle(options_.sustained ? 0.040 : 0.0);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5 || std::chrono::steady_clock::now() - begin < settle; ++i) run();
}

void Bench::time(const KernelId& id, const std::function<void()>& launch, Cache cache) {
  if (skip(id)) return;
  double last_us = 0;
  warm_up([&] { last_us = timed_batch(launch, cache, 1).front(); });
  // Warm repeats of a short kernel would queue behind the host, so they run one by one, as their sections say.
  const double batch_us = cache == Cache::kCold ? 20'000 : 0;
  const std::size_t batch = std::size_t(std::clamp(batch_us / std::max(last_us, 1.0), 1.0, 20.0));
  RepeatUntilStable repeat(rule());
  while (!repeat.finished())
    for (const double us : timed_batch(launch, cache, batch)) repeat.add(us);
  write(id, repeat.summary());
}

void Bench::time_with(const KernelId& id, const std::function<double()>& sample) {
  if (skip(id)) return;
  warm_up([&] { sample(); });
  RepeatUntilStable repeat(rule());
  while (!repeat.finished()) repeat.add(sample());
  write(id, repeat.summary());
}

void Bench::write(const KernelId& id, const Summary& s) {
  K3_CUDA(cudaGetLastError());
  writer_->add({id, s.median_us, s.p20_us, s.p80_us, s.reps});
}

void Bench::note(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
  if (writer_ != nullptr) writer_->add_note(text);
}

}  // namespace k3sim
