// The sections of a page as JSON: what tools/report/page/*.js draw. See html_page.h.
#include <fmt/format.h>

#include <cmath>

#include "sim/base/check.h"
#include "sim/trace/chrome_json.h"
#include "tools/report/html_page.h"

namespace k3sim {

namespace {

// A number that JSON accepts as it stands: -12.5e+3; anything else becomes null or text.
bool is_json_number(std::string_view s) {
  std::size_t i = s.substr(0, 1) == "-" ? 1 : 0;
  const auto digits = [&] {
    const std::size_t from = i;
    while (i < s.size() && s[i] >= '0' && s[i] <= '9') ++i;
    return i - from;
  };
  const std::size_t at = i, n = digits();
  if (n == 0 || (n > 1 && s[at] == '0')) return false;
  if (i < s.size() && s[i] == '.' && (++i, digits() == 0)) return false;
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    ++i;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == s.size();
}

std::string cell(const std::string& text, bool as_text) {
  if (text.empty()) return "null";
  return !as_text && is_json_number(text) ? text : json_quoted(text);
}

template <class Items, class Each>
std::string list(const Items& items, const Each& each) {
  std::string out = "[";
  for (const auto& i : items) {
    if (out.size() > 1) out += ',';
    out += each(i);
  }
  return out + ']';
}

// No number without its unit and where it is from.
void require(const std::string& where, const std::string& unit, const std::string& source) {
  CS_CHECK(!unit.empty(), "{} has no unit", where);
  CS_CHECK(!source.empty(), "{} has no source", where);
}

std::string table_json(const PageTable& t) {
  for (const PageColumn& c : t.columns)
    require(t.id + "." + c.key, c.text ? "text" : c.unit, c.source.empty() ? t.source : c.source);
  std::string out = fmt::format("{{\"id\":{},\"caption\":{},\"source\":{}{},\"columns\":", json_quoted(t.id),
                                json_quoted(t.caption), json_quoted(t.source), t.folded ? ",\"folded\":true" : "");
  out += list(t.columns, [&](const PageColumn& c) {
    return fmt::format("{{\"key\":{},\"title\":{},\"unit\":{},\"what\":{},\"text\":{}{}{}}}", json_quoted(c.key),
                       json_quoted(c.title), json_quoted(c.unit), json_quoted(c.what), c.text,
                       c.bar ? ",\"bar\":true" : "",
                       c.source.empty() || c.source == t.source ? "" : ",\"source\":" + json_quoted(c.source));
  });
  out += ",\"rows\":" + list(t.rows, [&](const std::vector<std::string>& row) {
           std::size_t column = 0;
           return list(row, [&](const std::string& text) { return cell(text, t.columns[column++].text); });
         });
  return out + '}';
}

std::string strings(const std::vector<std::string>& items) {
  return list(items, [](const std::string& s) { return json_quoted(s); });
}

std::string number(double v) {
  return std::isfinite(v) ? csv_number(v) : "null";
}

// The --set values behind the names of settings that hold several keys.
std::string assignments_json(const PageExplorer& e) {
  std::string out = "{";
  for (const auto& [key, by_value] : e.assignments) {
    std::string values;
    for (const auto& [value, sets] : by_value)
      values += fmt::format("{}{}:{}", values.empty() ? "" : ",", json_quoted(value), strings(sets));
    out += fmt::format("{}{}:{{{}}}", out.size() > 1 ? "," : "", json_quoted(key), values);
  }
  return out + '}';
}

}  // namespace

void HtmlPage::figures(const std::string& heading, const std::vector<PageFigure>& figures) {
  section("figures", heading, list(figures, [](const PageFigure& f) {
            require(f.key, is_json_number(f.value) ? f.unit : "text", f.source);
            return fmt::format("{{\"key\":{},\"label\":{},\"value\":{},\"unit\":{},\"source\":{}}}", json_quoted(f.key),
                               json_quoted(f.label), cell(f.value, false), json_quoted(f.unit), json_quoted(f.source));
          }));
}

void HtmlPage::table(const std::string& heading, const PageTable& table) {
  section("table", heading, table_json(table));
}

void HtmlPage::explore(const std::string& heading, const PageExplorer& e) {
  const auto axis = [](const PageAxis& a) {
    return fmt::format("{{\"key\":{},\"larger\":{},\"log\":{}}}", json_quoted(a.key), a.larger_is_better, a.log);
  };
  section("explore", heading,
          fmt::format("{{\"table\":{},\"x\":{},\"y\":{},\"parallel\":{},\"name\":{},\"sort\":{},\"command\":{},"
                      "\"front\":{},\"settings\":{},\"assignments\":{}}}",
                      table_json(e.table), axis(e.x), axis(e.y), strings(e.parallel), json_quoted(e.name_column),
                      json_quoted(e.sort), json_quoted(e.command), e.front, strings(e.settings), assignments_json(e)));
}

void HtmlPage::deltas(const std::string& heading, const PageDeltas& d) {
  require(d.table.id, d.unit, d.table.source);
  const std::string rows = list(d.rows, [](const PageDelta& r) {
    return fmt::format("[{},{},{}]", json_quoted(r.label), number(r.value), number(r.second));
  });
  section(
      "deltas", heading,
      fmt::format("{{\"table\":{},\"unit\":{},\"first\":{},\"second\":{},\"waterfall\":{},\"from\":{},\"larger\":{},"
                  "\"less\":{},\"more\":{},\"rows\":{}}}",
                  table_json(d.table), json_quoted(d.unit), json_quoted(d.first), json_quoted(d.second), d.waterfall,
                  number(d.from), d.larger_is_better, json_quoted(d.less), json_quoted(d.more), rows));
}

void HtmlPage::lines(const std::string& heading, const PageLines& l) {
  section("lines", heading,
          fmt::format("{{\"table\":{},\"x\":{},\"y\":{},\"mark\":{}}}", table_json(l.table), json_quoted(l.x),
                      strings(l.y), number(l.mark)));
}

void HtmlPage::heat(const std::string& heading, const std::vector<PageHeat>& grids) {
  section("heat", heading, list(grids, [](const PageHeat& h) {
            require(h.id, h.unit, h.source);
            const std::string values = list(h.values, [](const std::vector<double>& row) {
              return list(row, [](double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "null"; });
            });
            return fmt::format(
                "{{\"id\":{},\"caption\":{},\"source\":{},\"unit\":{},\"row_title\":{},"
                "\"column_title\":{},\"rows\":{},\"columns\":{},\"most\":{},\"least\":{},\"values\":{}}}",
                json_quoted(h.id), json_quoted(h.caption), json_quoted(h.source), json_quoted(h.unit),
                json_quoted(h.row_title), json_quoted(h.column_title), strings(h.rows), strings(h.columns),
                number(h.most), number(h.least), values);
          }));
}

void HtmlPage::note(const std::string& heading, const std::vector<std::string>& paragraphs,
                    const std::string& literal) {
  section("note", heading,
          fmt::format("{{\"paragraphs\":{},\"literal\":{}}}", strings(paragraphs), json_quoted(literal)));
}

}  // namespace k3sim
