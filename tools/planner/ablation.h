// What each mechanism buys: the scenario with one of them off at a time, and all of them off one after the other.
// A mechanism is one line of the table: a name and what turns it off, overrides (as --set takes them) or a change of
// the model's architecture. A line counts for a scenario when it has the mechanism and the prediction changes without
// it.
//   KDA -> full MLA: every KDA layer gets the attention of the model's first MLA layer
//   LatentMoE -> full width: experts of the hidden width, hidden / latent times fewer of them and of the choices, so
//   that parameters, FLOPs and values sent per token stay
// Source: issue "What-if" (ablate); k3-facts section 2.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/evaluate.h"

namespace k3sim {

struct Mechanism {
  const char* name;                     // what it is and what replaces it
  std::vector<std::string> applies;     // "key=value" that the scenario must have; empty: any
  std::vector<std::string> off;         // overrides that turn it off
  bool (*change)(Scenario&) = nullptr;  // or a change of the model; false: the scenario has no such mechanism
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
                const EvaluateOptions& asked);
CsvTable ablation_table(const Ablation& ablation);

}  // namespace k3sim
