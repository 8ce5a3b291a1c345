#include "tools/report/html_page.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/error.h"
#include "sim/trace/chrome_json.h"
#include "sim/trace/gzip.h"
#include "tools/report/page_assets.h"

namespace k3sim {

namespace {

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

constexpr std::size_t kPackFrom = 64 * 1024;

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// Large sections travel as gzip in base64, which start.js unpacks: a third of the page for long steps.
std::string packed(nlohmann::ordered_json page) {
  for (auto& section : page.at("sections")) {
    const std::string data = section.at("data").dump();
    if (data.size() < kPackFrom) continue;
    section.erase("data");
    section["packed"] = base64(gzip(data));
  }
  return page.dump();
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
      fmt::format("{{\"type\":{},\"heading\":{},\"data\":{}}}", json_quoted(type), json_quoted(heading), json));
}

std::string HtmlPage::data() const {
  std::string out = fmt::format("{{\"title\":{},\"answer\":{},\"k3sim_version\":{},\"sections\":[\n",
                                json_quoted(title_), json_quoted(answer_), json_quoted(K3SIM_VERSION));
  for (std::size_t i = 0; i < sections_.size(); ++i) out += (i == 0 ? "" : ",\n") + sections_[i];
  return out + "\n]}\n";
}

std::string HtmlPage::html_of(const std::string& data) {
  auto head = nlohmann::ordered_json::parse(data, nullptr, false);
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
  out += script_safe(packed(std::move(head)));
  out += "</script>\n";
  for (const std::string_view script : {page_assets().library, page_assets().script})
    if (!script.empty()) out += fmt::format("<script>\n{}\n</script>\n", script);
  return out + "</body>\n</html>\n";
}

}  // namespace k3sim
