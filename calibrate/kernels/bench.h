// What every kernel family gets: the machine, the options, a clock, and a place for its rows.
//   A family builds its inputs, calls verify() with the difference from its double-precision reference, then time().
//   time() repeats until stable. Cold: the L2 is flushed (a write several times its size) before every repeat; warm:
//   not. Device time is taken with events around the launches; the flush keeps the GPU busy while the host enqueues.
// Source: engine-design.md section 14.6.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/harness/availability.h"
#include "calibrate/harness/measurement_file.h"
#include "calibrate/harness/repeat_until_stable.h"
#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

struct BenchOptions {
  int gpus = 1;
  bool quick = false;
  bool check_only = false;
  bool sustained = false;  // 40 ms of the same kernel before timing: what a GPU at its power limit gives
  unsigned long long seed = 1;
};

enum class Cache { kCold, kWarm };

class Bench {
 public:
  Bench(BenchOptions options, MachineFacts machine, MeasurementWriter* writer);
  ~Bench();

  const BenchOptions& options() const { return options_; }
  const MachineFacts& machine() const { return machine_; }
  cudaStream_t stream() const { return stream_; }
  int sm_count() const { return sm_count_; }
  unsigned long long next_seed() { return ++seed_; }

  // Refuses (throws WrongResult) when error is above the limit or not a number.
  void verify(const std::string& what, double error, double limit);
  // True when the row must not be measured: it is in the file already, or only checks were asked for.
  bool skip(const KernelId& id) const;
  // Runs `launch` on stream() until stable and writes the row, unless skip(id).
  void time(const KernelId& id, const std::function<void()>& launch, Cache cache = Cache::kCold);
  // The same for work that brings its own clock: `sample` returns microseconds.
  void time_with(const KernelId& id, const std::function<double()>& sample);
  void note(const std::string& text);
  int checks() const { return checks_; }

 private:
  struct EventPair {
    cudaEvent_t start = nullptr, stop = nullptr;
  };
  // n repeats enqueued at once, so that the host's own time stays out; microseconds of each.
  std::vector<double> timed_batch(const std::function<void()>& launch, Cache cache, std::size_t n);
  void warm_up(const std::function<void()>& run) const;
  void write(const KernelId& id, const Summary& s);
  StopRule rule() const;
  BenchOptions options_;
  MachineFacts machine_;
  MeasurementWriter* writer_;
  cudaStream_t stream_ = nullptr;
  std::vector<EventPair> events_;
  DeviceBuffer<unsigned char> flush_;
  int sm_count_ = 0;
  int checks_ = 0;
  unsigned long long seed_;
};

struct Family {
  const char* name;
  Needs needs;
  void (*run)(Bench&);
};

// All families in the order in which they run.
const std::vector<Family>& families();

}  // namespace k3sim
