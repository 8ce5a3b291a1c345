// What there is to check below a folder: scenario folders (scenario.yaml, baseline expected.json beside it) and bare
// schedule CSV files (baseline NAME.expected.json beside them). CSV files inside a scenario folder belong to that
// scenario; CSV files that hold no schedule at all are left alone. A baseline whose input is gone is a target too.
// Source: product-spec section 3 (scenarios/NAME/scenario.yaml, expected.json); issue 11.
#pragma once

#include <string>
#include <vector>

#include "tools/regress/baseline.h"

namespace k3sim {

struct RegressTarget {
  std::string name;           // path relative to the checked folder, '/' separated
  std::string input;          // scenario.yaml or CSV
  std::string expected_file;  // may not exist yet
  bool is_schedule = false;
  bool input_exists = true;
};

// In order of name. `path` may also be one scenario.yaml or one CSV. Throws ConfigError when there is nothing to check.
std::vector<RegressTarget> find_regress_targets(const std::string& path);

// Runs the prediction. Never throws for a bad input: that is a status with its reason.
Baseline evaluate_target(const RegressTarget& target);

// Exposed for tests: the metrics of a schedule on unit times (F = I = W = 1, transfers free).
Baseline evaluate_schedule_csv(const std::string& text, const std::string& file);

// Compiler and version that the program was built with.
std::string toolchain_name();

}  // namespace k3sim
