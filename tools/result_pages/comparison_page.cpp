#include "tools/result_pages/comparison_page.h"

#include <fmt/format.h>

#include "tools/report/summary_json.h"

namespace k3sim {

namespace {

constexpr const char* kBoth = "prediction and measurement";

PageTable rows_of(const TraceComparison& c, const char* group, const char* id, const char* caption) {
  const PageTable all = page_table(id, caption, kBoth, comparison_table(c));
  PageTable t{id, caption, kBoth, {all.columns.begin() + 1, all.columns.end()}, {}};
  for (const auto& row : all.rows)
    if (row[0] == group) t.rows.emplace_back(row.begin() + 1, row.end());
  return t;
}

PageTable breakdown_table(const TraceComparison& c) {
  PageTable t{"breakdown",
              "Time of the first device; the four parts add up to the span",
              kBoth,
              {{"side", "side", "", "", true},
               {"span_ms", "span", "ms", "first kernel's start to last kernel's end"},
               {"compute_ms", "compute", "ms", "a compute kernel runs"},
               {"communication_ms", "communication", "ms", "only communication runs"},
               {"memory_ms", "copies", "ms", "only copies run"},
               {"idle_ms", "idle", "ms", "nothing runs"},
               {"overlap_pct", "overlap", "%", "communication time during which a compute kernel runs"}},
              {}};
  const auto add = [&](const char* side, const TraceMetrics& m) {
    if (m.devices.empty()) return;
    const DeviceTime& d = m.devices.front();
    const auto ms = [](std::int64_t ns) { return csv_number(static_cast<double>(ns) * 1e-6); };
    t.rows.push_back({side, ms(d.span_ns), ms(d.compute_ns), ms(d.communication_ns), ms(d.memory_ns), ms(d.idle_ns),
                      csv_number(d.overlap_pct())});
  };
  add("measured", c.measured);
  add("predicted", c.predicted);
  return t;
}

PageDeltas gaps(const TraceComparison& c) {
  PageDeltas d;
  d.unit = "ms";
  d.first = "predicted minus measured";
  d.less = "predicted shorter than measured";
  d.more = "predicted longer";
  d.table = rows_of(c, "family", "families", "Kernel families, largest gap first");
  for (const ComparisonRow& r : c.families)
    if (d.rows.size() < 12 && r.predicted_ms != r.measured_ms)
      d.rows.push_back({r.name, r.predicted_ms - r.measured_ms});
  return d;
}

std::string reproduce_line() {
  return fmt::format("k3sim {} gives these numbers again:", K3SIM_VERSION);
}

}  // namespace

HtmlPage trace_comparison_page(const TraceComparison& c, const std::string& command, const std::string& scenario_text) {
  const bool predicted = c.predicted_span_ms > 0;
  HtmlPage page("Prediction against a profiler trace",
                predicted
                    ? fmt::format("Measured {:.3f} ms, predicted {:.3f} ms: error {:+.1f} %", c.measured_span_ms,
                                  c.predicted_span_ms, c.span_error_pct())
                    : fmt::format("Measured {:.3f} ms; no scenario was given to compare with", c.measured_span_ms));
  std::vector<PageFigure> figures{
      {"measured_ms", "measured span", csv_number(c.measured_span_ms), "ms", "measurement"},
      {"covered_pct", "GPU time in known kernel families", csv_number(c.covered_pct), "%", "measurement"}};
  if (predicted) {
    figures.insert(figures.begin() + 1,
                   {{"predicted_ms", "predicted span", csv_number(c.predicted_span_ms), "ms", "prediction"},
                    {"error_pct", "error of the span", csv_number(c.span_error_pct()), "%", kBoth}});
  }
  page.figures("The answer in numbers", figures);
  page.table("Where the time goes", breakdown_table(c));
  if (predicted)
    page.deltas("Kernel families", gaps(c));
  else
    page.table("Kernel families", rows_of(c, "family", "families", "Kernel families"));
  page.table("Streams", rows_of(c, "stream", "streams", "Streams by role"));
  if (!c.actions.empty()) page.table("Actions", rows_of(c, "action", "actions", "Host annotations"));
  if (!c.collectives.empty()) page.table("Collectives", rows_of(c, "collective", "collectives", "Collectives by kind"));
  page.note("Assumptions and provenance",
            {"Error: predicted over measured minus one. 95th percentile over single kernels: when every kernel is "
             "predicted as "
             "the error of its family times the mean of its name. Share of the gap: size of this gap over all gaps."});
  page.note("How to reproduce", {reproduce_line(), command}, scenario_text);
  return page;
}

namespace {

std::string error_text(Bytes predicted, Bytes measured) {
  return measured == Bytes(0) ? "" : csv_number(100.0 * (predicted / measured - 1.0));
}

}  // namespace

CsvTable memory_comparison_table(const ReplayReport& measured, const RankMemory& m) {
  CsvTable out({{"what", "text", "peak, or a part of the predicted one"},
                {"measured_bytes", "byte", "of the snapshot", "measurement"},
                {"predicted_bytes", "byte", "of the pipeline rank compared with"},
                {"error_pct", "%", "predicted over measured minus one", kBoth}});
  const auto peak = [&](const char* what, Bytes mine, Bytes theirs) {
    out.add({what, fmt::format("{}", theirs.count()), fmt::format("{}", mine.count()), error_text(mine, theirs)});
  };
  peak("peak allocated", m.allocated, measured.measured_peak_allocated);
  peak("peak reserved", m.reserved, measured.measured_peak_reserved);
  for (const MemoryPart& part : memory_parts(m))
    if (part.bytes > Bytes(0))
      out.add({fmt::format("{}{}", part.host ? "host " : "", part.key), "", fmt::format("{}", part.bytes.count()), ""});
  return out;
}

HtmlPage memory_comparison_page(const ReplayReport& measured, const RankMemory& m, const Scenario& scenario,
                                const std::string& command) {
  const double mine = m.reserved.gibibytes(), theirs = measured.measured_peak_reserved.gibibytes();
  HtmlPage page("Prediction against a memory snapshot",
                fmt::format("Peak reserved: measured {:.3f} GiB, predicted {:.3f} GiB: error {:+.1f} %", theirs, mine,
                            theirs > 0 ? 100.0 * (mine / theirs - 1.0) : 0.0));
  const auto gib = [](Bytes b) { return csv_number(b.gibibytes()); };
  page.figures(
      "The answer in numbers",
      {{"measured_allocated_gib", "peak allocated, measured", gib(measured.measured_peak_allocated), "GiB",
        "measurement"},
       {"predicted_allocated_gib", "peak allocated, predicted", gib(m.allocated), "GiB", "prediction"},
       {"measured_reserved_gib", "peak reserved, measured", gib(measured.measured_peak_reserved), "GiB", "measurement"},
       {"predicted_reserved_gib", "peak reserved, predicted", gib(m.reserved), "GiB", "prediction"}});
  page.table("Measured and predicted",
             page_table("memory", fmt::format("Pipeline rank {}, peak at {}", m.rank, m.peak_action), kBoth,
                        memory_comparison_table(measured, m)));
  page.note(
      "Assumptions and provenance",
      {"Measured peaks come from the snapshot's statistics, or from its trace where it has none. Parts are those at "
       "the predicted peak; context and communicators lie outside the allocator and are not in a snapshot."});
  page.note("How to reproduce", {reproduce_line(), command, "Scenario:"}, scenario.text);
  return page;
}

CsvTable replay_table(const ReplayReport& r) {
  CsvTable out({{"what", "text", "peak", "measurement"},
                {"measured_bytes", "byte", "of the snapshot", "measurement"},
                {"emulated_bytes", "byte", "of the emulated allocator, same requests"},
                {"error_pct", "%", "emulated over measured minus one", kBoth}});
  const auto row = [&](const char* what, Bytes measured, Bytes emulated) {
    out.add({what, fmt::format("{}", measured.count()), fmt::format("{}", emulated.count()),
             error_text(emulated, measured)});
  };
  row("peak allocated", r.measured_peak_allocated, r.emulated_peak_allocated);
  row("peak reserved", r.measured_peak_reserved, r.emulated_peak_reserved);
  return out;
}

HtmlPage replay_page(const ReplayReport& r, const std::string& command) {
  std::string answer = fmt::format("{} requests replayed: ", r.requests);
  answer += r.first_difference
                ? fmt::format("first difference at event {}: measured {}, emulated {}", r.first_difference->event,
                              r.first_difference->expected, r.first_difference->got)
                : "every block and segment of the emulated allocator is the measured one";
  HtmlPage page("Replay of a memory snapshot", answer);
  page.figures("The answer in numbers",
               {{"requests", "replayed", fmt::format("{}", r.requests), "requests", "measurement"},
                {"measured_reserved_gib", "peak reserved, measured", csv_number(r.measured_peak_reserved.gibibytes()),
                 "GiB", "measurement"},
                {"emulated_reserved_gib", "peak reserved, emulated", csv_number(r.emulated_peak_reserved.gibibytes()),
                 "GiB", "prediction"},
                {"segment_events", "of segments", fmt::format("{}", r.segment_events), "events", "prediction"}});
  page.table("Peaks", page_table("peaks", "Measured and emulated", kBoth, replay_table(r)));
  page.note(
      "Assumptions and provenance",
      {"Addresses of new segments are the driver's choice and taken from the trace; which block serves a request and "
       "when a segment is taken is the emulation's own."});
  page.note("How to reproduce", {reproduce_line(), command});
  return page;
}

}  // namespace k3sim
