// Which cases of a file are scored: by completeness of the published configuration, kind of model, and words.
//   k3sim validate --type moe --tier A,B --match mixtral,qwen3,deepseek-v3,kimi-k2,megascale-moe,folding
// Source: issue of the MoE model (its accuracy is asked for on exactly this selection).
#pragma once

#include <string>
#include <vector>

#include "tools/validation/case_file.h"

namespace k3sim {

struct CaseSelection {
  std::vector<std::string> tiers;  // empty: all
  std::string type;                // dense, moe or empty
  std::vector<std::string> words;  // any of them in id, source, family or model name; empty: all
  bool any() const { return !tiers.empty() || !type.empty() || !words.empty(); }
};

bool selects(const CaseSelection& selection, const Case& c);

// Cases selected, in their order. Throws ConfigError when none is.
std::vector<Case> select_cases(std::vector<Case> cases, const CaseSelection& selection);

}  // namespace k3sim
