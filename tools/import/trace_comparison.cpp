// Source: engine-design section 13; see trace_comparison.h.
#include "tools/import/trace_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/import/predicted_items.h"

namespace k3sim {
namespace {

struct Sum {
  std::int64_t kernels = 0;
  double measured_ms = 0, predicted_ms = 0;
  bool communication = false;
  std::map<std::int32_t, std::vector<double>> by_name;  // measured durations
};
using Sums = std::map<std::string, Sum>;

double milliseconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

double p95_error(const Sum& s) {
  if (s.measured_ms <= 0) return 0;
  const double ratio = s.predicted_ms / s.measured_ms;
  std::vector<double> errors;
  for (const auto& [name, times] : s.by_name) {
    double sum = 0;
    for (double t : times) sum += t;
    const double mean = sum / static_cast<double>(times.size());
    for (double t : times)
      if (t > 0) errors.push_back(std::fabs(ratio * mean / t - 1));
  }
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  return 100 * errors[static_cast<std::size_t>(0.95 * static_cast<double>(errors.size() - 1))];
}

std::vector<ComparisonRow> rows_of(const Sums& sums) {
  std::vector<ComparisonRow> rows;
  double gaps = 0;
  for (const auto& [name, s] : sums) gaps += std::fabs(s.predicted_ms - s.measured_ms);
  for (const auto& [name, s] : sums) {
    ComparisonRow r{name, s.kernels, s.measured_ms, s.predicted_ms, p95_error(s), 0, s.communication};
    if (gaps > 0) r.gap_share_pct = 100 * std::fabs(s.predicted_ms - s.measured_ms) / gaps;
    rows.push_back(r);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ComparisonRow& a, const ComparisonRow& b) {
    return std::fabs(a.predicted_ms - a.measured_ms) > std::fabs(b.predicted_ms - b.measured_ms);
  });
  return rows;
}

const char* role_of(const StreamTime& s, const std::vector<StreamTime>& all) {
  if (2 * s.communication_ns > s.busy_ns) return "communication";
  const StreamTime* largest = nullptr;
  for (const StreamTime& other : all)
    if (2 * other.communication_ns <= other.busy_ns && (!largest || other.busy_ns > largest->busy_ns)) largest = &other;
  return largest && largest->stream == s.stream ? "compute" : "side";
}

// Innermost annotation of the host at a moment; annotations nest, so the latest start that still covers it is the one.
class Annotations {
 public:
  explicit Annotations(const KinetoTrace& trace) {
    for (const Annotation& a : trace.annotations)
      if (a.device < 0 && trace.names[static_cast<std::size_t>(a.name)].rfind("ProfilerStep", 0) != 0)
        sorted_.push_back(a);
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [](const Annotation& a, const Annotation& b) { return a.start_ns < b.start_ns; });
  }
  const Annotation* at(std::int64_t ns) const {
    auto it = std::upper_bound(sorted_.begin(), sorted_.end(), ns,
                               [](std::int64_t t, const Annotation& a) { return t < a.start_ns; });
    for (int steps = 0; it != sorted_.begin() && steps < 64; ++steps) {
      --it;
      if (it->end_ns >= ns) return &*it;
    }
    return nullptr;
  }

  std::int32_t number(const Annotation* a) const { return static_cast<std::int32_t>(a - sorted_.data()); }

 private:
  std::vector<Annotation> sorted_;
};

int first_device(const KinetoTrace& trace, int device) {
  return device >= 0 ? device : trace.events.front().device;
}

void add_streams(TraceComparison& c, bool predicted) {
  const TraceMetrics& m = predicted ? c.predicted : c.measured;
  for (const StreamTime& s : m.streams) {
    const std::string role = role_of(s, m.streams);
    auto row = std::find_if(c.streams.begin(), c.streams.end(), [&](const ComparisonRow& r) { return r.name == role; });
    if (row == c.streams.end()) {
      ComparisonRow fresh;
      fresh.name = role;
      fresh.communication = role == "communication";
      row = c.streams.insert(c.streams.end(), fresh);
    }
    (predicted ? row->predicted_ms : row->measured_ms) += milliseconds(s.busy_ns);
    if (!predicted) row->kernels += s.kernels;
  }
}

// NCCL's own name of the operation in the spelling of the prediction, with the ranks that take part.
std::string collective_of(const KinetoTrace& trace, const GpuEvent& e, TraceFamily family) {
  if (e.collective < 0) return to_string(family);
  std::string name;
  for (char c : trace.names[static_cast<std::size_t>(e.collective)])
    if (std::isalpha(static_cast<unsigned char>(c)))
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},  {"send", "send_recv"},
      {"recv", "send_recv"}};
  for (const auto& [part, kind] : kNames)
    if (name.find(part) != std::string::npos)
      return collective_name(kind, std::string_view(kind) == "send_recv" ? 2 : e.group_size);
  return collective_name(name, e.group_size);
}

// By the name of the part of a layer, or by that of the schedule's action.
void add_to_action(const PredictedWork& w, double ms, Sums& actions) {
  for (const std::string& name : {w.action, w.schedule_action})
    if (const auto it = actions.find(name); it != actions.end()) {
      it->second.predicted_ms += ms;
      return;
    }
}

nlohmann::ordered_json stream_json(const TraceMetrics& m) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const StreamTime& s : m.streams)
    list.push_back({{"stream", fmt::format("{}.{}", s.device, s.stream)},
                    {"busy_ms", milliseconds(s.busy_ns)},
                    {"host_wait_ms", milliseconds(s.host_wait_ns)},
                    {"kernel_wait_ms", milliseconds(s.kernel_wait_ns)},
                    {"other_wait_ms", milliseconds(s.other_wait_ns)}});
  return list;
}

nlohmann::ordered_json row_json(const ComparisonRow& r) {
  return {{"name", r.name},
          {"kernels", r.kernels},
          {"measured_ms", r.measured_ms},
          {"predicted_ms", r.predicted_ms},
          {"ratio", r.ratio()},
          {"error_pct", r.error_pct()},
          {"p95_abs_error_pct", r.p95_error_pct},
          {"gap_share_pct", r.gap_share_pct}};
}

nlohmann::ordered_json device_json(const TraceMetrics& m) {
  if (m.devices.empty()) return nullptr;
  const DeviceTime& d = m.devices.front();
  return {{"span_ms", milliseconds(d.span_ns)},
          {"compute_ms", milliseconds(d.compute_ns)},
          {"communication_ms", milliseconds(d.communication_ns)},
          {"memory_ms", milliseconds(d.memory_ns)},
          {"idle_ms", milliseconds(d.idle_ns)},
          {"overlap_pct", d.overlap_pct()}};
}

}  // namespace

std::vector<ActionKernel> kernels_by_action(const KinetoTrace& trace, int device) {
  device = first_device(trace, device);
  const Annotations annotations(trace);
  std::vector<ActionKernel> out;
  for (const GpuEvent& e : trace.events) {
    const Annotation* a = e.device == device && e.launched_ns >= 0 ? annotations.at(e.launched_ns) : nullptr;
    if (a) out.push_back({&e, family_of_kernel(trace.name_of(e)), a->name, annotations.number(a)});
  }
  return out;
}

std::vector<TimedWork> work_of_trace(const KinetoTrace& trace, int device) {
  std::vector<TimedWork> work;
  device = first_device(trace, device);
  for (const GpuEvent& e : trace.events) {
    if (e.device != device) continue;
    const std::string collective = e.collective < 0 ? "" : trace.names[static_cast<std::size_t>(e.collective)];
    work.push_back(
        {e.start_ns, e.end_ns, e.launched_ns, e.device, e.stream, family_of_kernel(trace.name_of(e), collective)});
  }
  return work;
}

TraceComparison compare_trace(const KinetoTrace& trace, const PredictedTrace* prediction, int device) {
  TraceComparison c;
  device = first_device(trace, device);
  const std::vector<TimedWork> work = work_of_trace(trace, device);
  c.measured = measure_trace(work);
  const Annotations annotations(trace);
  Sums families, actions, collectives;
  double total = 0, covered = 0;
  std::size_t i = 0;
  for (const GpuEvent& e : trace.events) {
    if (e.device != device) continue;
    const TimedWork& w = work[i++];
    const double ms = milliseconds(e.end_ns - e.start_ns);
    total += ms;
    covered += w.family == TraceFamily::other ? 0 : ms;
    const auto add = [&](Sum& s) {
      ++s.kernels;
      s.measured_ms += ms;
      s.communication = s.communication || is_communication(w.family);
      s.by_name[e.name].push_back(ms);
    };
    add(families[to_string(w.family)]);
    if (const Annotation* a = e.launched_ns >= 0 ? annotations.at(e.launched_ns) : nullptr)
      add(actions[trace.names[static_cast<std::size_t>(a->name)]]);
    if (is_communication(w.family)) add(collectives[collective_of(trace, e, w.family)]);
  }
  c.covered_pct = total > 0 ? 100 * covered / total : 0;
  c.measured_span_ms = milliseconds(c.measured.devices.front().span_ns);
  if (prediction) {
    std::vector<TimedWork> predicted;
    const bool tells_weight_gradients = families.count(to_string(TraceFamily::weight_grad)) > 0;
    for (const PredictedWork& w : prediction->work) {
      const double ms = milliseconds(w.time.end_ns - w.time.start_ns);
      predicted.push_back(w.time);
      Sum& s = families[to_string(tells_weight_gradients ? w.time.family : w.plain)];
      s.predicted_ms += ms;
      s.communication = is_communication(w.time.family);
      add_to_action(w, ms, actions);
      if (is_communication(w.time.family)) collectives[w.collective].predicted_ms += ms;
    }
    if (!predicted.empty()) c.predicted = measure_trace(predicted);
    c.predicted_span_ms = milliseconds(prediction->span_ns);
  }
  c.families = rows_of(families);
  c.actions = rows_of(actions);
  c.collectives = rows_of(collectives);
  add_streams(c, false);
  if (prediction) add_streams(c, true);
  return c;
}

CsvTable comparison_table(const TraceComparison& c) {
  CsvTable out({{"group", "text", "family, stream, action or collective", "measurement"},
                {"name", "text", "what was compared", "measurement"},
                {"kernels", "1", "measured kernels", "measurement"},
                {"measured_ms", "ms", "sum of durations", "measurement"},
                {"predicted_ms", "ms", "sum of durations"},
                {"ratio", "1", "predicted over measured", "prediction and measurement"},
                {"error_pct", "%", "predicted over measured minus one", "prediction and measurement"},
                {"p95_abs_error_pct", "%", "95th percentile over single kernels", "prediction and measurement"},
                {"gap_share_pct", "%", "size of this gap over that of all gaps", "prediction and measurement"}});
  const bool predicted = c.predicted_span_ms > 0;
  const auto group = [&](const char* name, const std::vector<ComparisonRow>& rows) {
    for (const ComparisonRow& r : rows) {
      const bool both = predicted && r.measured_ms > 0 && r.predicted_ms > 0;
      out.add({name, r.name, fmt::format("{}", r.kernels), csv_number(r.measured_ms),
               predicted ? csv_number(r.predicted_ms) : "", both ? csv_number(r.ratio()) : "",
               both ? csv_number(r.error_pct()) : "", both ? csv_number(r.p95_error_pct) : "",
               predicted ? csv_number(r.gap_share_pct) : ""});
    }
  };
  group("family", c.families);
  group("stream", c.streams);
  group("action", c.actions);
  group("collective", c.collectives);
  return out;
}

std::string comparison_json(const TraceComparison& c) {
  nlohmann::ordered_json j;
  j["span"] = {{"measured_ms", c.measured_span_ms},
               {"predicted_ms", c.predicted_span_ms},
               {"error_pct", c.predicted_span_ms > 0 ? nlohmann::ordered_json(c.span_error_pct()) : nullptr}};
  j["covered_pct"] = c.covered_pct;
  j["breakdown"] = {{"measured", device_json(c.measured)}, {"predicted", device_json(c.predicted)}};
  j["idle"] = {{"measured", stream_json(c.measured)}, {"predicted", stream_json(c.predicted)}};
  const auto group = [&](const char* name, const std::vector<ComparisonRow>& rows) {
    j[name] = nlohmann::ordered_json::array();
    for (const ComparisonRow& r : rows) j[name].push_back(row_json(r));
  };
  group("families", c.families);
  group("streams", c.streams);
  group("actions", c.actions);
  group("collectives", c.collectives);
  return j.dump(2) + "\n";
}

}  // namespace k3sim
