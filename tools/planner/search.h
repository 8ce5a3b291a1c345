// Best-first search of a space.
//   1. layout rules, counted per reason      4. sort by bound; evaluate in batches of 64 at one task per layer pass
//   2. shared cost tables                    5. stop when the next bound cannot enter the best `finalists`
//   3. bounds on memory and time             6. finalists again at kernel level with the allocator, as `run` does
// Batches are fixed in size and only their results move the limit, so that which candidates are pruned does not depend
// on threads or ranks (WorkShare): layout rules, tables and bounds are made by every rank, evaluations are shared.
// Without pruning all candidates are evaluated; finalists and winner are the same because the bounds are admissible.
// Source: engine-design section 16.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/planner/bounds.h"
#include "tools/planner/evaluate.h"
#include "tools/planner/work_share.h"

namespace k3sim {

enum class Objective : std::uint8_t { mfu, step_time, cost, goodput };

struct SearchOptions {
  Objective objective = Objective::mfu;
  int top = 10;
  int finalists = 32;  // evaluated at kernel level; at least 2 x top
  bool prune = true;
  bool search_policies = true;  // the best layouts again with the activation policy searched per stage
  int threads = 1;
  WorkShare* share = nullptr;  // who evaluates candidates; null: `threads`
  EvaluateOptions evaluate;
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};
};

struct Ranked {
  std::int64_t index = 0;
  bool policy_searched = false;  // activation policy `auto` instead of the configuration's
  std::string scenario_text;     // complete; `run` gives the same numbers
  double coarse = 0;             // objective at one task per layer pass, smaller is better
  double value = 0;              // objective at kernel level
  double bound_seconds = 0;
  Evaluation evaluation;               // kernel level
  double step_low = 0, step_high = 0;  // seconds with all costs 5 % lower and higher
  bool pareto = false;                 // nothing is better in time, memory headroom and GPUs at once
};

struct SearchResult {
  std::int64_t raw = 0, candidates = 0, evaluated = 0, simulated = 0;
  Reasons reasons;                                                             // of every configuration, by index
  ReasonCounts counts{};                                                       // of `reasons`
  std::vector<Ranked> ranked;                                                  // finalists that fit, best first
  std::vector<Ranked> misfits;                                                 // finalists that do not fit
  double rules_s = 0, tables_s = 0, bounds_s = 0, coarse_s = 0, kernel_s = 0;  // wall time per phase
};

SearchResult search(const SearchSpace& space, MachineStore& machines, const SearchOptions& options);

// What a step of one second is worth: value = seconds x factor, smaller is better.
//   step_time 1; mfu GPUs x peak / model FLOPs; cost USD per token; goodput GPU seconds per useful token
// `flops_per_token`: of the model, as trained_flops_per_token gives it (only mfu needs it).
double objective_factor(Objective objective, const Scenario& scenario, const Machine& machine, Flops flops_per_token);
Objective parse_objective(const std::string& name);  // throws UsageError

// a and b cannot be told apart: their step times differ by less than the error of the difference of two plans of one
// model on one cluster. Their errors have most in common (the same kernels, the same stack), so that
//   error of the difference = sqrt(ea^2 + eb^2 - 2 rho ea eb),  e = step_p95 - step (95 % of one side)
// rho: correlation of the errors of layouts of one model, cluster and batch in the published runs, by
// tools/validation/error_correlation.h (hardware_profiles/plan_errors.yaml; `k3sim validate` prints it).
bool too_close(const StepSummary& a, const StepSummary& b);
double plan_error_correlation();  // rho; read once

}  // namespace k3sim
