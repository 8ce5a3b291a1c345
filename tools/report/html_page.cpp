#include "tools/report/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/error.h"
#include "sim/trace/chrome_json.h"
#include "tools/report/page_assets.h"

namespace k3sim {

namespace {

std::string in_quotes(std::string_view text) {
  return json_quoted(text);
}

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
  return !as_text && is_json_number(text) ? text : in_quotes(text);
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

std::string table_json(const PageTable& t) {
  std::string out = fmt::format("{{\"id\":{},\"caption\":{},\"source\":{},\"columns\":", in_quotes(t.id),
                                in_quotes(t.caption), in_quotes(t.source));
  out += list(t.columns, [](const PageColumn& c) {
    return fmt::format("{{\"key\":{},\"title\":{},\"unit\":{},\"what\":{},\"text\":{}}}", in_quotes(c.key),
                       in_quotes(c.title), in_quotes(c.unit), in_quotes(c.what), c.text);
  });
  out += ",\"rows\":" + list(t.rows, [&](const std::vector<std::string>& row) {
           std::size_t column = 0;
           return list(row, [&](const std::string& text) { return cell(text, t.columns[column++].text); });
         });
  return out + '}';
}

// Inside a script element "</" would end it and "<!--" would change how the rest is read.
std::string script_safe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void HtmlPage::section(const std::string& type, const std::string& heading, const std::string& json) {
  sections_.push_back(
      fmt::format("{{\"type\":{},\"heading\":{},\"data\":{}}}", in_quotes(type), in_quotes(heading), json));
}

void HtmlPage::figures(const std::string& heading, const std::vector<PageFigure>& figures) {
  section("figures", heading, list(figures, [](const PageFigure& f) {
            return fmt::format("{{\"key\":{},\"label\":{},\"value\":{},\"unit\":{},\"source\":{}}}", in_quotes(f.key),
                               in_quotes(f.label), cell(f.value, false), in_quotes(f.unit), in_quotes(f.source));
          }));
}

void HtmlPage::table(const std::string& heading, const PageTable& table) {
  section("table", heading, table_json(table));
}

void HtmlPage::explore(const std::string& heading, const PageExplorer& e) {
  const auto axis = [](const PageAxis& a) {
    return fmt::format("{{\"key\":{},\"larger\":{}}}", in_quotes(a.key), a.larger_is_better);
  };
  section("explore", heading,
          fmt::format("{{\"table\":{},\"x\":{},\"y\":{},\"parallel\":{},\"name\":{}}}", table_json(e.table), axis(e.x),
                      axis(e.y), list(e.parallel, [](const std::string& k) { return in_quotes(k); }),
                      in_quotes(e.name_column)));
}

void HtmlPage::note(const std::string& heading, const std::vector<std::string>& paragraphs,
                    const std::string& literal) {
  section("note", heading,
          fmt::format("{{\"paragraphs\":{},\"literal\":{}}}",
                      list(paragraphs, [](const std::string& p) { return in_quotes(p); }), in_quotes(literal)));
}

std::string HtmlPage::data() const {
  std::string out = fmt::format("{{\"title\":{},\"answer\":{},\"k3sim_version\":{},\"sections\":[\n", in_quotes(title_),
                                in_quotes(answer_), in_quotes(K3SIM_VERSION));
  for (std::size_t i = 0; i < sections_.size(); ++i) out += (i == 0 ? "" : ",\n") + sections_[i];
  return out + "\n]}\n";
}

std::string HtmlPage::html_of(const std::string& data) {
  const auto head = nlohmann::json::parse(data, nullptr, false);
  if (!head.is_object() || !head.contains("title") || !head.contains("answer") || !head.contains("sections"))
    throw ConfigError("this is not the data of a report");
  const std::string title = html_escaped(head.at("title").get<std::string>());
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + title + "</title>\n";
  out += "<link rel=\"icon\" href=\"data:,\">\n<style>\n";
  out += page_assets().style;
  out += "</style>\n</head>\n<body>\n<header>\n<p class=\"title\">" + title + "</p>\n<h1 id=\"answer\">";
  out += html_escaped(head.at("answer").get<std::string>());
  out +=
      "</h1>\n</header>\n<main id=\"main\"></main>\n<noscript><p>Charts and tables need JavaScript; the same numbers "
      "are in the CSV and JSON files beside this page.</p></noscript>\n<footer>k3sim ";
  out += html_escaped(head.value("k3sim_version", "")) + "</footer>\n<script type=\"application/json\" id=\"data\">";
  out += script_safe(data);
  out += "</script>\n";
  for (const std::string_view script : {page_assets().library, page_assets().script})
    if (!script.empty()) out += fmt::format("<script>\n{}\n</script>\n", script);
  return out + "</body>\n</html>\n";
}

}  // namespace k3sim
