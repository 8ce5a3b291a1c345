// Source: case_selection.h.
#include "tools/validation/case_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.h"

namespace k3sim {

bool selects(const CaseSelection& s, const Case& c) {
  if (!s.tiers.empty() && std::find(s.tiers.begin(), s.tiers.end(), c.tier) == s.tiers.end()) return false;
  if (!s.type.empty() && (s.type == "moe") != (c.model.experts > 0)) return false;
  if (s.words.empty()) return true;
  return std::any_of(s.words.begin(), s.words.end(), [&](const std::string& word) {
    for (const std::string* text : {&c.id, &c.group, &c.family, &c.model.name})
      if (text->find(word) != std::string::npos) return true;
    return false;
  });
}

std::vector<Case> select_cases(std::vector<Case> cases, const CaseSelection& selection) {
  if (!selection.any()) return cases;
  const std::size_t all = cases.size();
  std::erase_if(cases, [&](const Case& c) { return !selects(selection, c); });
  if (cases.empty()) throw ConfigError(fmt::format("none of the {} cases is selected", all), "--match");
  return cases;
}

}  // namespace k3sim
