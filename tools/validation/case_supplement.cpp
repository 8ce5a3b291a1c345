// See case_supplement.h. Source: there.
#include "tools/validation/case_supplement.h"

#include <fmt/format.h>

#include <filesystem>

#include "models/config/yaml_reader.h"

namespace k3sim {

namespace {

struct Entry {
  std::vector<std::string> cases;
  std::string dispatcher, overlap, schedule, token_drop, recompute, source;
  std::vector<int> stage_layers;
};

Entry read_entry(const YamlNode& n) {
  Entry e;
  n.require("cases", e.cases);
  n.require("source", e.source);
  n.read("dispatcher", e.dispatcher);
  n.read("overlap", e.overlap);
  n.read("schedule", e.schedule);
  n.read("token_drop", e.token_drop);
  n.read("recompute", e.recompute);
  n.read("stage_layers", e.stage_layers);
  if (e.dispatcher.empty() && e.overlap.empty() && e.schedule.empty() && e.token_drop.empty() && e.recompute.empty() &&
      e.stage_layers.empty())
    n.problem("says nothing about its cases");
  return e;
}

void apply(const Entry& e, Case& c) {
  const auto replace = [](std::string& field, const std::string& text) {
    if (!text.empty()) field = text;
  };
  replace(c.dispatcher, e.dispatcher);
  replace(c.overlap, e.overlap);
  replace(c.schedule, e.schedule);
  replace(c.token_drop, e.token_drop);
  replace(c.recompute, e.recompute);
  if (!e.stage_layers.empty()) c.stage_layers = e.stage_layers;
}

}  // namespace

bool matches_case(const std::string& pattern, const std::string& id) {
  if (!pattern.empty() && pattern.back() == '*') return id.rfind(pattern.substr(0, pattern.size() - 1), 0) == 0;
  return id == pattern;
}

void apply_supplement(const std::string& case_path, std::vector<Case>& cases) {
  const std::filesystem::path path = std::filesystem::path(case_path).parent_path() / "supplement.yaml";
  if (!std::filesystem::exists(path)) return;
  YamlDocument doc = YamlDocument::load(path.string());
  for (const YamlNode& n : doc.root().items()) {
    const Entry entry = read_entry(n);
    for (const std::string& pattern : entry.cases) {
      bool found = false;
      for (Case& c : cases)
        if (matches_case(pattern, c.id)) apply(entry, c), found = true;
      if (!found) n.child("cases").problem(fmt::format("'{}' matches no case of {}", pattern, case_path));
    }
  }
  doc.throw_if_problems();
}

}  // namespace k3sim
