#include "tools/report/table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace k3sim {

namespace {

constexpr std::size_t kParallelAxes = 8;

struct UnitSuffix {
  const char *suffix, *unit;
};
constexpr UnitSuffix kUnits[] = {{"_tflops_per_gpu", "TFLOP/s"},
                                 {"tokens_per_s_per_gpu", "tokens/s"},
                                 {"_usd_per_step", "USD"},
                                 {"_usd", "USD"},
                                 {"_pct", "%"},
                                 {"_gib", "GiB"},
                                 {"_bytes", "byte"},
                                 {"_days", "days"},
                                 {"_hours", "h"},
                                 {"_us", "us"},
                                 {"_ms", "ms"},
                                 {"_s", "s"}};

bool is_number(const std::string& s) {
  double v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error == std::errc() && end == s.data() + s.size();
}

// step_time_s is "step time": the unit stands beside the title. Group names and shares keep their usual spelling.
std::string title_of(std::string name) {
  if (name.find('.') != std::string::npos) return name;  // a scenario's key
  if (name.ends_with("_usd_per_step")) return "cost per step";
  if (name == "tokens_per_s_per_gpu") return "throughput per GPU";
  if (name == "model_tflops_per_gpu") return "model FLOP rate";
  for (const UnitSuffix& u : kUnits) {
    const std::string_view suffix = u.suffix;
    if (suffix[0] != '_' || !name.ends_with(suffix) || suffix == "_hours" || suffix.ends_with("_gpu")) continue;
    name.resize(name.size() - suffix.size());
    break;
  }
  for (char& c : name)
    if (c == '_') c = ' ';
  constexpr std::pair<const char*, const char*> kUsual[] = {
      {"mfu", "MFU"}, {"hfu", "HFU"}, {"gpu", "GPU"}, {"gpus", "GPUs"}, {"gpu hours", "GPU hours"}, {"moe", "MoE"}};
  for (const auto& [from, to] : kUsual)
    if (name == from) return to;
  return name;
}

// Numeric columns with more than one value, in table order.
std::vector<std::string> varying_columns(const PageTable& t) {
  std::vector<std::string> out;
  for (std::size_t c = 0; c < t.columns.size() && out.size() < kParallelAxes; ++c) {
    if (t.columns[c].text) continue;
    std::set<std::string> values;
    for (const auto& row : t.rows) {
      values.insert(row[c]);
      if (values.size() > 1) break;
    }
    if (values.size() > 1) out.push_back(t.columns[c].key);
  }
  return out;
}

const char* first_present(const PageTable& t, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    for (const PageColumn& c : t.columns)
      if (c.key == key && !c.text) return key;
  return "";
}

}  // namespace

std::string unit_of_name(const std::string& name) {
  for (const UnitSuffix& u : kUnits)
    if (name.ends_with(u.suffix)) return u.unit;
  return "";
}

PageColumn page_column(const CsvColumn& c) {
  const bool text = c.unit == "text";
  return {c.name, title_of(c.name), text ? "" : c.unit, c.what, text, false, c.source};
}

PageTable page_table(const std::string& id, const std::string& caption, const std::string& source,
                     const CsvTable& table) {
  PageTable out{id, caption, source, {}, table.rows()};
  for (const CsvColumn& c : table.columns()) out.columns.push_back(page_column(c));
  return out;
}

HtmlPage build_table_report(const TableReport& r) {
  HtmlPage page(r.title, r.answer);
  if (!r.figures.empty()) page.figures("The answer in numbers", r.figures);
  if (r.x.key.empty() || r.y.key.empty()) {
    page.table("Results", r.table);
  } else {
    PageExplorer e{r.table, r.x, r.y, r.parallel, r.name_column};
    if (e.parallel.empty()) e.parallel = varying_columns(r.table);
    if (e.name_column.empty()) e.name_column = r.table.columns.front().key;
    if (!r.x.larger_is_better) e.sort = r.x.key;
    page.explore("Results", e);
  }
  for (const PageTable& t : r.more) page.table(t.caption, t);
  if (!r.notes.empty()) page.note("Assumptions and provenance", r.notes);
  std::vector<std::string> how{fmt::format("k3sim {} gives these numbers again:", K3SIM_VERSION), r.command};
  if (!r.scenario_text.empty()) how.emplace_back("Input, with all overrides applied:");
  page.note("How to reproduce", how, r.scenario_text);
  return page;
}

TableReport table_report_of_csv(const CsvData& csv, const std::string& title, const std::vector<CsvColumn>& known) {
  TableReport r;
  r.title = title;
  r.table.id = "results";
  r.table.caption = fmt::format("{} rows", csv.rows.size());
  r.table.source = "prediction";
  for (std::size_t c = 0; c < csv.header.size(); ++c) {
    const bool text = std::any_of(csv.rows.begin(), csv.rows.end(),
                                  [&](const auto& row) { return !row[c].empty() && !is_number(row[c]); });
    const std::string unit = unit_of_name(csv.header[c]);
    PageColumn column = page_column({csv.header[c], text ? "text" : unit.empty() ? "1" : unit, ""});
    for (const CsvColumn& k : known)
      if (k.name == csv.header[c]) column = page_column(k);
    column.text = text;
    r.table.columns.push_back(std::move(column));
  }
  r.table.rows = csv.rows;
  const char* time = first_present(r.table, {"step_time_s", "measured", "days"});
  const char* other = first_present(r.table, {"peak_reserved_gib", "predicted", "mfu_pct", "cost_usd", "goodput_pct"});
  if (csv.rows.size() > 1 && *time != 0 && *other != 0) {
    r.x = {time, false};
    r.y = {other, std::string(other).ends_with("_pct")};
  }
  return r;
}

}  // namespace k3sim
