#include "tools/result_pages/validation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tools/report/table_report.h"

namespace k3sim {

namespace {

using Rows = std::vector<const ValidationRow*>;

bool done(const ValidationRow& r) {
  return r.status == "predicted";
}

// Errors by a property of the cases; nothing when all cases share it.
void add_groups(std::vector<PageTable>& tables, const Rows& rows, const std::string& title,
                const std::function<std::string(const ValidationRow&)>& key) {
  std::map<std::string, Rows> groups;
  for (const ValidationRow* r : rows) groups[key(*r)].push_back(r);
  if (groups.size() < 2) return;
  PageTable t{"by_" + title,
              "Absolute errors by " + title,
              "prediction and publication",
              {{"group", title, "", "", true, false, "publication"},
               {"predicted", "predicted", "1", "cases with a prediction"},
               {"skipped", "skipped", "1", "cases without one"},
               {"median_pct", "median", "%", "median absolute error", false, true},
               {"p90_pct", "90 %", "%", "90th percentile of the absolute error"},
               {"bias_pct", "bias", "%", "mean signed error"}},
              {}};
  for (const auto& [name, members] : groups) {
    const ErrorSummary s = summarize_errors(members);
    const auto n = [&](double v) { return s.predicted > 0 ? csv_number(v) : std::string(); };
    t.rows.push_back({name.empty() ? "(not stated)" : name, fmt::format("{}", s.predicted),
                      fmt::format("{}", s.skipped), n(s.median_abs), n(s.p90_abs), n(s.bias)});
  }
  tables.push_back(std::move(t));
}

// How many errors are within 5 %, 10 % ...
PageTable spread(const Rows& rows) {
  PageTable t{"spread",
              "How the absolute errors are spread",
              "prediction and publication",
              {{"class", "absolute error", "", "", true},
               {"cases", "cases", "1", "in this class", false, true},
               {"share_pct", "share", "%", "of all predicted"},
               {"within_pct", "this or better", "%", "share of all predicted"}},
              {}};
  constexpr double kLimits[] = {5, 10, 15, 20, 30, 50, 1e9};
  std::vector<double> errors;
  for (const ValidationRow* r : rows)
    if (done(*r)) errors.push_back(std::abs(r->error_pct()));
  std::size_t before = 0;
  double low = 0;
  for (const double high : kLimits) {
    const auto within =
        static_cast<std::size_t>(std::count_if(errors.begin(), errors.end(), [&](double e) { return e < high; }));
    const double all = static_cast<double>(std::max<std::size_t>(1, errors.size()));
    t.rows.push_back({high > 1e8 ? fmt::format("{:.0f} % or more", low) : fmt::format("{:.0f} to {:.0f} %", low, high),
                      fmt::format("{}", within - before),
                      csv_number(100.0 * static_cast<double>(within - before) / all),
                      csv_number(100.0 * static_cast<double>(within) / all)});
    before = within;
    low = high;
  }
  return t;
}

PageTable skipped(const Rows& rows) {
  PageTable t{"skipped",
              "Why cases are not predicted",
              "publication",
              {{"reason", "reason", "", "", true}, {"cases", "cases", "1", "", false, true}},
              {}};
  std::map<std::string, int> reasons;
  for (const ValidationRow* r : rows)
    if (!done(*r)) ++reasons[r->reason];
  for (const auto& [why, n] : reasons) t.rows.push_back({why, fmt::format("{}", n)});
  return t;
}

}  // namespace

CsvTable validation_table(const Rows& rows) {
  const char* published = "publication";
  CsvTable out({{"id", "text", "identifier of the case", published},
                {"source", "text", "where it was published or measured", published},
                {"tier", "text", "completeness of the published configuration", published},
                {"family", "text", "cases that share a configuration but for one knob", published},
                {"kind", "text", "what is compared", published},
                {"gpu", "text", "GPU type", published},
                {"precision", "text", "of the matrix multiplications", published},
                {"moe", "1", "1: mixture of experts", published},
                {"status", "text", "predicted or skipped"},
                {"metric", "text", "compared quantity, with its unit", published},
                {"unit", "text", "of measured and predicted; 1: a ratio", published},
                {"measured", "mixed", "published value", published},
                {"predicted", "mixed", "our value"},
                {"error_pct", "%", "predicted over measured minus one", "prediction and publication"},
                {"reason", "text", "why it is not predicted"}});
  for (const ValidationRow* r : rows) {
    const bool ok = done(*r);
    const std::string unit = unit_of_name(r->metric);
    out.add({r->id, r->group, r->tier, r->family, r->kind, r->gpu, r->precision, r->moe ? "1" : "0", r->status,
             r->metric, unit.empty() ? "1" : unit, ok ? csv_number(r->measured) : "",
             ok ? csv_number(r->predicted) : "", ok ? csv_number(r->error_pct()) : "", ok ? "" : r->reason});
  }
  return out;
}

HtmlPage validation_page(const ValidationPageInput& in) {
  const ErrorSummary s = in.summary ? *in.summary : summarize_errors(in.scored);
  HtmlPage page(
      "Validation: " + in.what,
      fmt::format("{} cases predicted, {} not: median absolute error {:.1f} %, 90 % below {:.1f} %, bias {:+.1f} %",
                  s.predicted, s.skipped, s.median_abs, s.p90_abs, s.bias));
  page.figures(
      "The answer in numbers",
      {{"predicted", "predicted", fmt::format("{}", s.predicted), "cases", "publication"},
       {"skipped", "without prediction", fmt::format("{}", s.skipped), "cases", "publication"},
       {"median_abs_error_pct", "median absolute error", csv_number(s.median_abs), "%", "prediction and publication"},
       {"p90_abs_error_pct", "90 % of errors below", csv_number(s.p90_abs), "%", "prediction and publication"},
       {"bias_pct", "bias", csv_number(s.bias), "%", "prediction and publication"}});
  page.table("Spread of the errors", spread(in.scored));
  std::vector<PageTable> tables;
  add_groups(tables, in.rows, "kind", [](const ValidationRow& r) { return r.kind; });
  add_groups(tables, in.scored, "tier", [](const ValidationRow& r) { return r.tier; });
  add_groups(tables, in.scored, "type", [](const ValidationRow& r) { return std::string(r.moe ? "MoE" : "dense"); });
  add_groups(tables, in.scored, "gpu", [](const ValidationRow& r) { return r.gpu; });
  add_groups(tables, in.scored, "size", [](const ValidationRow& r) { return r.size_class; });
  add_groups(tables, in.scored, "source", [](const ValidationRow& r) { return r.group; });
  for (const PageTable& t : tables) page.table(&t == tables.data() ? "Errors by group" : "", t);
  for (const PageTable& t : in.more) page.table(t.caption, t);
  PageExplorer e{page_table("cases", fmt::format("{} cases", in.rows.size()), "prediction and publication",
                            validation_table(in.rows)),
                 {"measured", true, true},
                 {"error_pct", false},
                 {"tier", "gpu", "kind", "metric", "measured", "predicted", "error_pct"},
                 "id"};
  e.front = false;
  page.explore("Every case", e);
  if (s.skipped > 0) page.table("Cases without prediction", skipped(in.rows));
  page.note("Assumptions and provenance", in.notes);
  page.note("How to reproduce", {fmt::format("k3sim {} gives these numbers again:", K3SIM_VERSION), in.command});
  return page;
}

ValidationRow validation_row(const PublishedPrediction& k) {
  const KernelPrediction& p = k.prediction;
  ValidationRow r;
  r.id = k.id;
  r.group = k.table;
  r.tier = k.calibration ? "fitted to such rows" : "independent";
  r.family = p.family;
  r.kind = "kernel";
  r.status = p.compared() ? "predicted" : "skipped";
  r.reason = p.reason;
  r.metric = "time_us";
  r.measured = p.measured_us;
  r.predicted = p.predicted_us;
  r.gpu = k.gpu;
  r.precision = p.dtype;
  return r;
}

ValidationRow validation_row(const CollectiveRow& c) {
  ValidationRow r;
  r.id = c.id;
  r.group = c.table;
  r.tier = c.calibration ? "read into a profile" : "independent";
  r.family = c.family;
  r.kind = c.kind;
  r.status = c.predicted_row ? "predicted" : "skipped";
  r.reason = c.reason;
  r.metric = c.metric;
  r.measured = c.measured;
  r.predicted = c.predicted;
  r.gpu = c.gpu;
  return r;
}

}  // namespace k3sim
