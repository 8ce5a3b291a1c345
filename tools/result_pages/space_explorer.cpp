#include "tools/result_pages/space_explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "sim/base/check.h"
#include "tools/planner/reasons.h"

namespace k3sim {

namespace {

struct KeyFigure {
  const char *key, *label;
};
constexpr KeyFigure kFigures[] = {{"step_time_s", "step time"},
                                  {"step_time_p95_s", "step time, 95 % below"},
                                  {"mfu_pct", "MFU"},
                                  {"tokens_per_s_per_gpu", "throughput per GPU"},
                                  {"peak_reserved_gib", "peak memory held"},
                                  {"capacity_gib", "memory of one GPU"},
                                  {"bubble_pct", "pipeline bubble"},
                                  {"cost_usd_per_step", "cost per step"},
                                  {"gpus", "GPUs"}};

// What the explorer's lines run through first: the axes with several values, then the results that decide.
std::vector<std::string> parallel_keys(const SearchSpace& space) {
  std::vector<std::string> out;
  for (const SpaceAxis& axis : space.axes())
    if (axis.values.size() > 1 && out.size() < 8) out.push_back(axis.key);
  for (const char* key : {"step_time_s", "mfu_pct", "peak_reserved_gib", "bubble_pct"}) out.emplace_back(key);
  return out;
}

// Axis values that set something else than KEY=VALUE.
void add_assignments(PageExplorer& e, const SearchSpace& space) {
  for (const SpaceAxis& axis : space.axes())
    for (const SpaceValue& v : axis.values) {
      if (v.assignments.size() == 1 && v.assignments[0].first == axis.key && v.assignments[0].second == v.text)
        continue;
      std::vector<std::string>& sets = e.assignments[axis.key][v.text];
      for (const auto& [key, value] : v.assignments) sets.push_back(key + "=" + value);
    }
}

std::vector<std::vector<std::string>> best_rows(const ResultRows& rows) {
  if (rows.rows.size() <= kMostExplored) return rows.rows;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const double step = rows.number(i, "step_time_s");
    order.emplace_back(step > 0 ? step : std::numeric_limits<double>::infinity(), i);
  }
  std::nth_element(order.begin(), order.begin() + kMostExplored, order.end());
  order.resize(kMostExplored);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::vector<std::string>> out;
  for (const auto& [step, i] : order) out.push_back(rows.rows[i]);
  return out;
}

}  // namespace

std::size_t ResultRows::column(const std::string& name) const {
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].name == name) return c;
  CS_CHECK(false, "no column is called '{}'", name);
}

double ResultRows::number(std::size_t row, const std::string& name) const {
  const std::string& s = text(row, name);
  double v = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(s.data(), s.data() + s.size(), v);
  return v;
}

PageExplorer space_explorer(const SearchSpace& space, const ResultRows& rows, const std::string& id) {
  PageExplorer e;
  e.table = {id, fmt::format("{} configurations", rows.rows.size()), "prediction", {}, best_rows(rows)};
  if (e.table.rows.size() < rows.rows.size())
    e.table.caption = fmt::format("The {} fastest of {} configurations; the CSV file holds all", e.table.rows.size(),
                                  rows.rows.size());
  for (const CsvColumn& c : rows.columns) e.table.columns.push_back(page_column(c));
  e.x = {"step_time_s", false};
  e.y = {"peak_reserved_gib", false};
  e.parallel = parallel_keys(space);
  e.name_column = "id";
  e.command = "k3sim run " + space.file();
  for (const SpaceAxis& axis : space.axes()) e.settings.push_back(axis.key);
  add_assignments(e, space);
  return e;
}

std::string settings_text(const SearchSpace& space, const ResultRows& rows, std::size_t row) {
  std::string out;
  for (const SpaceAxis& axis : space.axes()) {
    if (axis.values.size() < 2) continue;
    const std::string key = axis.key.substr(axis.key.rfind('.') + 1);  // npos + 1 is 0
    out += (out.empty() ? "" : " ") + (axis.key == "variants" ? std::string() : key + "=") + rows.text(row, axis.key);
  }
  return out;
}

std::string row_answer(const ResultRows& rows, std::size_t row) {
  const double step = rows.number(row, "step_time_s");
  return fmt::format("step {:.3f} s (+{:.1f} % at 95 % confidence), MFU {:.1f} %, {:.1f} of {:.1f} GiB", step,
                     100.0 * (rows.number(row, "step_time_p95_s") / step - 1.0), rows.number(row, "mfu_pct"),
                     rows.number(row, "peak_reserved_gib"), rows.number(row, "capacity_gib"));
}

std::vector<PageFigure> row_figures(const ResultRows& rows, std::size_t row) {
  std::vector<PageFigure> out;
  for (const KeyFigure& f : kFigures) {
    const CsvColumn& c = rows.columns[rows.column(f.key)];
    out.push_back({f.key, f.label, rows.text(row, f.key), f.key == std::string("gpus") ? "GPUs" : c.unit, c.source});
  }
  return out;
}

PageTable reasons_table(const std::vector<std::pair<std::string, std::int64_t>>& counts, std::int64_t all) {
  PageTable t{"reasons",
              fmt::format("What became of {} configurations", all),
              "search",
              {{"reason", "reason", "", "code in the CSV file", true},
               {"count", "configurations", "1", "how many ended with it", false, true},
               {"share_pct", "share", "%", "of all configurations"},
               {"what", "what it says", "", "the rule", true}},
              {}};
  for (const auto& [reason, n] : counts) {
    std::string what;
    for (int i = 0; i < kReasons; ++i)
      if (reason == to_string(static_cast<Reason>(i))) what = explain(static_cast<Reason>(i));
    if (n > 0)
      t.rows.push_back(
          {reason, fmt::format("{}", n),
           csv_number(100.0 * static_cast<double>(n) / static_cast<double>(std::max<std::int64_t>(1, all))), what});
  }
  return t;
}

std::string space_name(const SearchSpace& space) {
  const std::filesystem::path file(space.file());
  const std::string folder = file.parent_path().filename().string();
  return file.filename() == "space.yaml" && !folder.empty() ? folder : file.stem().string();
}

void add_space_reproduction(HtmlPage& page, const SearchSpace& space, const std::string& command,
                            const std::string& hint) {
  page.note(
      "How to reproduce",
      {fmt::format("k3sim {} gives these numbers again, bit by bit:", K3SIM_VERSION), command, hint + "The space:"},
      space.text());
}

}  // namespace k3sim
