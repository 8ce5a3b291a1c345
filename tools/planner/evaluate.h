// One configuration from its number to its prediction or to the reason why there is none. Thread-safe: machines are
// loaded once and only read. A result is what `run` gives for the same scenario and detail.
// Source: issue "What-if" (every rejected candidate has a reason code).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/space.h"
#include "tools/planner/reasons.h"
#include "tools/report/csv.h"

namespace k3sim {

class MachineStore {
 public:
  const Machine& get(const Scenario& scenario);  // the reference stays valid
  MoeEffectsCache& moe() { return moe_; }

 private:
  std::mutex mutex_;
  MachineCache cache_;
  MoeEffectsCache moe_;
};

struct EvaluateOptions {
  StepGraphOptions::Detail detail = StepGraphOptions::Detail::kernel;
  bool allow_assumed = false;
  bool tp_across_nodes = false;
  bool keep_graph = false;
  StepReuse reuse = {};  // pieces of plans that agree with this scenario (step_plan.h)
};

struct Evaluation {
  Reason reason = Reason::ok;
  std::string text;           // of the problem
  Scenario scenario;          // valid when it could be read
  StepPrediction prediction;  // valid when reason is ok or memory
  bool simulated() const { return reason == Reason::ok || reason == Reason::memory; }
};

Evaluation evaluate(const SearchSpace& space, std::int64_t index, MachineStore& machines,
                    const EvaluateOptions& options);
// The same for a scenario that is already read. Catches ConfigError.
Evaluation evaluate(Scenario scenario, MachineStore& machines, const EvaluateOptions& options);

// Columns that every table of predictions has: the keys of summary.json in flat form.
const std::vector<CsvColumn>& summary_columns();
// One column per axis of a space, with the description of its scenario key.
std::vector<CsvColumn> axis_columns(const SearchSpace& space);
std::vector<std::string> summary_cells(const Scenario& scenario, const StepSummary& summary);

std::string csv_cell(const std::string& text);  // quoted when needed
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace k3sim
