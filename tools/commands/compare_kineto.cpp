// Source: product-spec section 2; see compare_kineto.h. The unit of comparison is `pair` for a trace of one overlapped
// forward and backward chunk (an annotation "1F1B"), else `step`.
#include "tools/commands/compare_kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/import/trace_comparison.h"
#include "tools/result_pages/comparison_page.h"

namespace k3sim {
namespace {

TraceUnit unit_of(const KinetoComparison& c, const KinetoTrace& trace) {
  if (c.unit != "auto") return c.unit == "pair" ? TraceUnit::pair : TraceUnit::step;
  const bool pair = std::any_of(trace.annotations.begin(), trace.annotations.end(), [&](const Annotation& a) {
    return trace.names[static_cast<std::size_t>(a.name)] == "1F1B";
  });
  return pair ? TraceUnit::pair : TraceUnit::step;
}

std::string number(double v) {
  return fmt::format("{:.3f}", v);
}

void print_rows(const char* what, const std::vector<ComparisonRow>& rows, bool predicted, CommandContext& context) {
  if (rows.empty()) return;
  TextTable table(predicted ? std::vector<std::string>{what, "kernels", "measured ms", "predicted ms", "error %",
                                                       "p95 |error| %", "of gap %"}
                            : std::vector<std::string>{what, "kernels", "measured ms"});
  for (const ComparisonRow& r : rows) {
    std::vector<std::string> cells{r.name.substr(0, 60), fmt::format("{}", r.kernels), number(r.measured_ms)};
    if (predicted) {
      cells.push_back(number(r.predicted_ms));
      cells.push_back(r.measured_ms > 0 && r.predicted_ms > 0 ? fmt::format("{:+.1f}", r.error_pct()) : "");
      cells.push_back(r.measured_ms > 0 && r.predicted_ms > 0 ? fmt::format("{:.1f}", r.p95_error_pct) : "");
      cells.push_back(fmt::format("{:.1f}", r.gap_share_pct));
    }
    table.add(std::move(cells));
  }
  context.out << "\n" << table.to_text(context.colour());
}

void print_breakdown(const TraceComparison& c, CommandContext& context) {
  TextTable table({"breakdown", "span ms", "compute", "communication", "memory", "idle", "overlap %"});
  const auto add = [&](const char* name, const TraceMetrics& m) {
    if (m.devices.empty()) return;
    const DeviceTime& d = m.devices.front();
    const auto ms = [](std::int64_t ns) { return number(static_cast<double>(ns) * 1e-6); };
    table.add({name, ms(d.span_ns), ms(d.compute_ns), ms(d.communication_ns), ms(d.memory_ns), ms(d.idle_ns),
               fmt::format("{:.1f}", d.overlap_pct())});
  };
  add("measured", c.measured);
  add("predicted", c.predicted);
  context.out << table.to_text(context.colour());
  TextTable idle({"idle on stream", "side", "busy ms", "host wait", "kernel wait", "other"});
  const auto add_idle = [&](const char* side, const TraceMetrics& m) {
    for (const StreamTime& s : m.streams) {
      const auto ms = [](std::int64_t ns) { return number(static_cast<double>(ns) * 1e-6); };
      idle.add({fmt::format("{}.{}", s.device, s.stream), side, ms(s.busy_ns), ms(s.host_wait_ns), ms(s.kernel_wait_ns),
                ms(s.other_wait_ns)});
    }
  };
  add_idle("measured", c.measured);
  add_idle("predicted", c.predicted);
  context.out << "\n" << idle.to_text(context.colour());
}

std::string answer_of(const TraceComparison& c) {
  if (c.predicted_span_ms == 0) return fmt::format("measured {:.3f} ms", c.measured_span_ms);
  return fmt::format("measured {:.3f} ms, predicted {:.3f} ms ({:+.1f} %)", c.measured_span_ms, c.predicted_span_ms,
                     c.span_error_pct());
}

void write_outputs(const KinetoComparison& o, const TraceComparison& c, const std::string& scenario_text,
                   const CommandContext& context) {
  OutputFolder out(o.out);
  out.add("compare.json", comparison_json(c));
  add_results(out, {{"compare.csv", comparison_table(c)}}, trace_comparison_page(c, context.command, scenario_text));
  out.commit();
}

void print(const TraceComparison& c, CommandContext& context) {
  const bool predicted = c.predicted_span_ms > 0;
  context.out << answer_of(c)
              << fmt::format("; {:.2f} % of the GPU time is in known kernel families\n\n", c.covered_pct);
  print_breakdown(c, context);
  print_rows("family", c.families, predicted, context);
  print_rows("stream", c.streams, predicted, context);
  print_rows("action", c.actions, predicted, context);
  print_rows("collective", c.collectives, predicted, context);
}

}  // namespace

int compare_kineto(const KinetoComparison& o, CommandContext& context) {
  const KinetoTrace trace = load_kineto(o.trace);
  if (trace.truncated)
    context.err << fmt::format("note: the trace is damaged ({}); {} events before that are used\n", trace.damage,
                               trace.events_read);
  PredictedTrace prediction;
  std::string scenario_text;
  if (!o.scenario.empty()) {
    const Scenario scenario = load_scenario(o.scenario, o.set);
    prediction = predict_trace(scenario, load_machine(scenario), unit_of(o, trace), o.rank);
    scenario_text = scenario.text;
  }
  const TraceComparison c = compare_trace(trace, o.scenario.empty() ? nullptr : &prediction, o.device);
  if (!o.out.empty()) write_outputs(o, c, scenario_text, context);
  if (context.json)
    context.out << comparison_json(c);
  else
    print(c, context);
  return 0;
}

}  // namespace k3sim
