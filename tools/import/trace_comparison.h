// Measured trace beside its prediction: one row per kernel family, stream, action and collective.
//   ratio         predicted time / measured time
//   p95 |error|   95th percentile over the measured kernels when every kernel is predicted as ratio x the mean of its
//                 name: the spread that no prediction by shape can remove, on top of the error of the sum
//   gap           predicted - measured, and its share of the sum of all gaps' sizes
// A kernel belongs to the innermost host annotation during which it was launched.
// Source: engine-design section 13.
#pragma once

#include <string>
#include <vector>

#include "tools/import/kineto_reader.h"
#include "tools/import/predicted_trace.h"
#include "tools/report/csv.h"

namespace k3sim {

struct ComparisonRow {
  std::string name;
  std::int64_t kernels = 0;
  double measured_ms = 0, predicted_ms = 0;
  double p95_error_pct = 0, gap_share_pct = 0;
  bool communication = false;
  double ratio() const { return measured_ms > 0 ? predicted_ms / measured_ms : 0; }
  double error_pct() const { return measured_ms > 0 ? 100 * (predicted_ms / measured_ms - 1) : 0; }
};

struct TraceComparison {
  std::vector<ComparisonRow> families, actions, collectives, streams;  // largest gap first, but streams by role
  TraceMetrics measured, predicted;
  double measured_span_ms = 0, predicted_span_ms = 0;
  double covered_pct = 0;  // of GPU time in a family other than `other`
  double span_error_pct() const { return 100 * (predicted_span_ms / measured_span_ms - 1); }
};

std::vector<TimedWork> work_of_trace(const KinetoTrace& trace, int device);  // -1: the first device
// A kernel that was launched inside a host annotation.
struct ActionKernel {
  const GpuEvent* event = nullptr;
  TraceFamily family = TraceFamily::other;
  std::int32_t action = 0;  // index in the trace's names
  std::int32_t run = 0;     // number of the annotation: kernels of one run share it
};
std::vector<ActionKernel> kernels_by_action(const KinetoTrace& trace, int device = -1);

// Without a prediction only the measured side is filled.
TraceComparison compare_trace(const KinetoTrace& trace, const PredictedTrace* prediction, int device);

CsvTable comparison_table(const TraceComparison& comparison);  // long form: group, name, ...
std::string comparison_json(const TraceComparison& comparison);

}  // namespace k3sim
