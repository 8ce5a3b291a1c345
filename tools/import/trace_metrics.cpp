// Source: Holistic Trace Analysis; see trace_metrics.h.
#include "tools/import/trace_metrics.h"

#include <algorithm>
#include <map>

namespace k3sim {
namespace {

constexpr std::int64_t kBackToBack = 30;  // ns

using Interval = std::pair<std::int64_t, std::int64_t>;

std::vector<Interval> merged(std::vector<Interval> in) {
  std::sort(in.begin(), in.end());
  std::vector<Interval> out;
  for (const Interval& i : in) {
    if (out.empty() || i.first > out.back().second)
      out.push_back(i);
    else
      out.back().second = std::max(out.back().second, i.second);
  }
  return out;
}

std::int64_t length(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const Interval& i : intervals) sum += i.second - i.first;
  return sum;
}

std::int64_t common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (to > from) sum += to - from;
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

DeviceTime measure_device(int device, const std::vector<const TimedWork*>& work) {
  std::vector<Interval> all, compute, communication;
  for (const TimedWork* w : work) {
    all.emplace_back(w->start_ns, w->end_ns);
    if (is_communication(w->family))
      communication.emplace_back(w->start_ns, w->end_ns);
    else if (w->family != TraceFamily::copy)
      compute.emplace_back(w->start_ns, w->end_ns);
  }
  DeviceTime d;
  d.device = device;
  const std::vector<Interval> busy = merged(all), c = merged(compute), n = merged(communication);
  d.span_ns = busy.back().second - busy.front().first;
  d.compute_ns = length(c);
  d.communication_total_ns = length(n);
  d.overlapped_ns = common(n, c);
  d.communication_ns = d.communication_total_ns - d.overlapped_ns;
  d.memory_ns = length(busy) - d.compute_ns - d.communication_ns;
  d.idle_ns = d.span_ns - length(busy);
  return d;
}

StreamTime measure_stream(int device, int stream, const std::vector<const TimedWork*>& work) {
  StreamTime s;
  s.device = device;
  s.stream = stream;
  s.kernels = static_cast<std::int64_t>(work.size());
  std::int64_t end = work.front()->start_ns;
  for (const TimedWork* w : work) {
    const std::int64_t gap = w->start_ns - end;
    if (gap > 0) {
      if (gap <= kBackToBack)
        s.kernel_wait_ns += gap;
      else if (w->launched_ns > end)
        s.host_wait_ns += gap;
      else
        s.other_wait_ns += gap;
    }
    const std::int64_t length_ns = std::max<std::int64_t>(0, w->end_ns - std::max(end, w->start_ns));
    s.busy_ns += length_ns;
    if (is_communication(w->family)) s.communication_ns += length_ns;
    end = std::max(end, w->end_ns);
  }
  return s;
}

}  // namespace

double DeviceTime::overlap_pct() const {
  return communication_total_ns == 0
             ? 0
             : 100.0 * static_cast<double>(overlapped_ns) / static_cast<double>(communication_total_ns);
}

TraceMetrics measure_trace(std::vector<TimedWork> work) {
  std::stable_sort(work.begin(), work.end(),
                   [](const TimedWork& a, const TimedWork& b) { return a.start_ns < b.start_ns; });
  std::map<int, std::vector<const TimedWork*>> devices;
  std::map<std::pair<int, int>, std::vector<const TimedWork*>> streams;
  for (const TimedWork& w : work) {
    devices[w.device].push_back(&w);
    streams[{w.device, w.stream}].push_back(&w);
  }
  TraceMetrics out;
  for (const auto& [device, items] : devices) out.devices.push_back(measure_device(device, items));
  for (const auto& [key, items] : streams) out.streams.push_back(measure_stream(key.first, key.second, items));
  return out;
}

}  // namespace k3sim
