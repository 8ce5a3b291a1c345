// Source: engine-design section 19; see output.h.
#include "tools/regress/output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/report/html_page.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

Json value_json(const std::optional<double>& number, const std::string& text) {
  if (number) return *number;
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string tally(const RegressReport& report) {
  std::string out;
  for (Category c : {Category::status_change, Category::regression, Category::drift, Category::rows_removed,
                     Category::improvement, Category::rows_added})
    if (const std::size_t n = report.count(c)) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, to_string(c));
  return out.empty() ? "nothing changed" : out;
}

// An attribute keeps its line breaks only as a reference, and XML allows no other control character.
std::string xml_escape(const std::string& text) {
  std::string out;
  for (const char c : html_escaped(text)) {
    if (c == '\n')
      out += "&#10;";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string junit_case(const std::string& scenario, const std::string& metric, const RegressRow* row) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_escape(scenario), xml_escape(metric));
  if (!row) return out + "/>\n";
  const std::string what = xml_escape(change_text(*row));
  const std::string why = xml_escape(explanation_text(*row));
  if (row->blocking)
    return out + fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                             to_string(row->category), what, why);
  return out +
         fmt::format(">\n      <system-out>{}: {}</system-out>\n    </testcase>\n", to_string(row->category), what);
}

const RegressRow* find_row(const RegressReport& report, const std::string& scenario, const std::string& metric) {
  for (const RegressRow& r : report.rows)
    if (r.scenario == scenario && r.metric == metric) return &r;
  return nullptr;
}

struct JunitCases {
  std::string text;
  std::size_t tests = 0, failures = 0;
  void add(const std::string& scenario, const std::string& metric, const RegressRow* row) {
    text += junit_case(scenario, metric, row);
    ++tests;
    failures += row && row->blocking ? 1 : 0;
  }
};

std::string markdown_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string change_text(const RegressRow& row) {
  const std::string from = row.expected.empty() ? "none" : row.expected;
  const std::string to = row.actual.empty() ? "none" : row.actual;
  std::string out = fmt::format("{} {} -> {}", row.metric, from, to);
  if (row.change_pct() != 0) out += fmt::format(" ({:+.3g} %)", row.change_pct());
  if (!row.reason.empty()) out += fmt::format(": {}", row.reason);
  return out;
}

std::string explanation_text(const RegressRow& row) {
  std::string out;
  for (const MovedPart& p : row.moved)
    out += fmt::format("{}{} {:+.4g}", out.empty() ? "" : ", ", p.what, p.actual - p.expected);
  return out;
}

std::string regress_text(const RegressReport& report) {
  std::string out, before;
  for (const RegressRow& r : report.rows) {
    out += fmt::format("{} {:<13} {}: {}\n", r.blocking ? "FAIL" : "    ", to_string(r.category), r.scenario,
                       change_text(r));
    const std::string why = explanation_text(r);
    if (!why.empty() && why != before) out += fmt::format("                   moved: {}\n", why);
    before = why;
  }
  for (const std::string& note : report.notes) out += fmt::format("note {}\n", note);
  out += fmt::format("{}: {} scenario{}, {} metrics compared; {}\n", report.pass() ? "pass" : "fail",
                     report.scenarios.size(), report.scenarios.size() == 1 ? "" : "s", report.checked.size(),
                     tally(report));
  if (report.count(Category::rows_added) + report.count(Category::improvement) > 0 || !report.pass())
    out += "to accept: k3sim regress record\n";
  return out;
}

std::string regress_json(const RegressReport& report) {
  Json j = {{"result", report.pass() ? "pass" : "fail"}, {"rows", Json::array()}};
  for (const RegressRow& r : report.rows) {
    Json row = {{"scenario", r.scenario},
                {"metric", r.metric},
                {"expected", value_json(r.expected_value, r.expected)},
                {"actual", value_json(r.actual_value, r.actual)},
                {"category", to_string(r.category)},
                {"blocking", r.blocking},
                {"change_pct", r.change_pct()},
                {"reason", r.reason},
                {"moved", Json::array()}};
    for (const MovedPart& p : r.moved)
      row["moved"].push_back({{"what", p.what}, {"expected", p.expected}, {"actual", p.actual}});
    j["rows"].push_back(row);
  }
  j["scenarios"] = report.scenarios;
  j["metrics_compared"] = report.checked.size();
  j["notes"] = report.notes;
  return j.dump(2) + "\n";
}

std::string regress_junit(const RegressReport& report) {
  JunitCases cases;
  for (const auto& [scenario, metric] : report.checked) cases.add(scenario, metric, find_row(report, scenario, metric));
  for (const RegressRow& r : report.rows) {
    const auto same = [&](const auto& c) { return c.first == r.scenario && c.second == r.metric; };
    bool compared = false;
    for (const auto& c : report.checked) compared = compared || same(c);
    if (!compared) cases.add(r.scenario, r.metric, &r);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{0}\" failures=\"{1}\">\n"
      "  <testsuite name=\"k3sim regress\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"0\">\n{2}"
      "  </testsuite>\n</testsuites>\n",
      cases.tests, cases.failures, cases.text);
}

std::string regress_markdown(const RegressReport& report, std::size_t byte_limit) {
  std::string out =
      fmt::format("### k3sim regress: {}\n\n{} scenarios, {} metrics compared; {}.\n", report.pass() ? "pass" : "fail",
                  report.scenarios.size(), report.checked.size(), tally(report));
  if (!report.rows.empty())
    out += "\n| | Scenario | Metric | Expected | Actual | Change | What moved |\n|---|---|---|---:|---:|---:|---|\n";
  std::size_t left = report.rows.size();
  for (const RegressRow& r : report.rows) {
    const std::string why = r.reason.empty() ? explanation_text(r) : r.reason;
    const std::string line =
        fmt::format("| {}{} | {} | {} | {} | {} | {} | {} |\n", r.blocking ? "**" : "",
                    std::string(to_string(r.category)) + (r.blocking ? "**" : ""), markdown_cell(r.scenario),
                    markdown_cell(r.metric), markdown_cell(r.expected), markdown_cell(r.actual),
                    r.change_pct() == 0 ? "" : fmt::format("{:+.3g} %", r.change_pct()), markdown_cell(why));
    if (out.size() + line.size() + 200 > byte_limit) break;
    out += line;
    --left;
  }
  if (left > 0) out += fmt::format("\n{} more rows are in the JSON and JUnit reports.\n", left);
  for (const std::string& note : report.notes)
    if (out.size() + note.size() + 10 < byte_limit) out += fmt::format("\n- {}\n", note);
  return out;
}

}  // namespace k3sim
