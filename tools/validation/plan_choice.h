// The choice, not only the number: within groups of layouts of the same model, GPUs, batch and source, how much slower
// than the best is the layout that the prediction would choose (regret), and how well are the layouts ordered
// (Kendall's tau-b). Source: peers notes 3.4 (regret within groups of at least four plans).
#pragma once

#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

struct ChoiceGroup {
  std::string name;  // source|model|layers|gpu|gpus|global batch|sequence|precision
  int layouts = 0;
  double regret_pct = 0, tau = 0;
  std::string chosen, best;  // ids of the layouts (first run) with the least predicted and the least measured time
};

struct PlanChoice {
  std::vector<ChoiceGroup> by_group;  // largest regret first, then by name
  int groups = 0, layouts = 0;
  double mean_regret_pct = 0, worst_regret_pct = 0, mean_tau = 0;
};

// `rows` as validate_cases returns them for `cases` (rows of kind model are used). Groups of at least `least` layouts.
PlanChoice plan_choice(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows, std::size_t least = 4);

// Kendall's tau-b of two equally long lists; 0 when one of them is constant.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace k3sim
