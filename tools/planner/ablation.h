// What each mechanism buys: the scenario with one of them off at a time, and all of them off one after the other.
// A mechanism is one line of the table: a name and the overrides (as --set takes them) that turn it off. A line counts
// for a scenario when its overrides change the prediction's input and pass the checks.
// Source: issue "What-if" (ablate); k3-facts section 2.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/evaluate.h"

namespace k3sim {

struct Mechanism {
  const char* name;                  // what it is and what replaces it
  std::vector<std::string> applies;  // "key=value" that the scenario must have; empty: any
  std::vector<std::string> off;      // overrides that turn it off
};
const std::vector<Mechanism>& mechanisms();

struct AblationRow {
  std::string name;
  bool cumulative = false;
  Reason reason = Reason::ok;
  std::string text;  // why there is no number
  StepSummary summary;
  double step_change_s = 0;  // against the scenario (single) or the row before (cumulative)
  double mfu_change = 0, memory_change_gib = 0;
};

struct Ablation {
  StepSummary base;
  std::vector<AblationRow> rows;  // single ones first
};

// `path` and `overrides` as for load_scenario.
Ablation ablate(const std::string& path, const std::vector<std::string>& overrides, MachineStore& machines,
                const EvaluateOptions& options);
CsvTable ablation_table(const Ablation& ablation);

}  // namespace k3sim
