// What Holistic Trace Analysis reports, for any list of timed GPU work - measured or predicted - so that both sides of
// a comparison use one definition:
//   breakdown   of the span of one device: idle = no kernel runs; compute = a compute kernel runs; communication and
//               memory = only such kernels run (HTA: "non compute"); the four add up to the span
//   overlap     communication time during which a compute kernel runs, over all communication time
//   idle        per stream, every gap: host wait when the next kernel was launched after the gap began, kernel wait
//   when
//               the gap is at most 30 ns or the streams hand over back to back, else other (it waited for another
//               stream)
// Source: facebookresearch/HolisticTraceAnalysis hta/analyzers/breakdown_analysis.py, communication_analysis.py.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/import/kernel_families.h"

namespace k3sim {

struct TimedWork {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t launched_ns = -1;
  int device = 0, stream = 0;
  TraceFamily family = TraceFamily::other;
};

struct StreamTime {
  int device = 0, stream = 0;
  std::int64_t busy_ns = 0, kernels = 0;
  std::int64_t communication_ns = 0;  // of busy
  std::int64_t host_wait_ns = 0, kernel_wait_ns = 0, other_wait_ns = 0;
};

struct DeviceTime {
  int device = 0;
  std::int64_t span_ns = 0;
  std::int64_t compute_ns = 0, communication_ns = 0, memory_ns = 0, idle_ns = 0;
  std::int64_t communication_total_ns = 0, overlapped_ns = 0;
  double overlap_pct() const;
};

struct TraceMetrics {
  std::vector<DeviceTime> devices;  // by device
  std::vector<StreamTime> streams;  // by device, then stream
};

TraceMetrics measure_trace(std::vector<TimedWork> work);

}  // namespace k3sim
