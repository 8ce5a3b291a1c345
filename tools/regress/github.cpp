// Source: actions/toolkit docs/commands.md (escaping of data and of properties); see github.h.
#include "tools/regress/github.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/regress/output.h"

namespace k3sim {
namespace {

std::string escape(std::string_view text, bool property) {
  std::string out;
  for (char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return out;
}

const char* level_of(const RegressRow& r) {
  if (r.blocking) return "error";
  return r.category == Category::improvement ? "notice" : "warning";
}

std::string annotation(const char* level, const std::string& file, const std::string& title, const std::string& text) {
  return fmt::format("::{} file={},title={}::{}\n", level, escape(file, true), escape(title, true),
                     escape(text, false));
}

std::string annotations_of(const RegressReport& report, const std::string& level) {
  std::string out;
  std::size_t all = 0, shown = 0;
  for (const RegressRow& r : report.rows) all += level_of(r) == level ? 1 : 0;
  for (const RegressRow& r : report.rows) {
    if (level_of(r) != level) continue;
    if (shown == kGithubAnnotations - 1 && all > kGithubAnnotations) {
      out += annotation(level.c_str(), r.file, "k3sim regress",
                        fmt::format("{} more: see the step summary or the JUnit report", all - shown));
      break;
    }
    const std::string why = explanation_text(r);
    out += annotation(level.c_str(), r.file, fmt::format("k3sim {}: {}", to_string(r.category), r.scenario),
                      why.empty() ? change_text(r) : fmt::format("{}\nmoved: {}", change_text(r), why));
    ++shown;
  }
  return out;
}

}  // namespace

std::string github_annotations(const RegressReport& report) {
  return annotations_of(report, "error") + annotations_of(report, "warning") + annotations_of(report, "notice");
}

}  // namespace k3sim
