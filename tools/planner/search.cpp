#include "tools/planner/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "models/failure/goodput.h"
#include "sim/base/error.h"
#include "tools/planner/candidates.h"

namespace k3sim {

namespace {

constexpr std::size_t kBatch = 64;

using Clock = std::chrono::steady_clock;

double lap(Clock::time_point& since) {
  const Clock::time_point now = Clock::now();
  const double s = std::chrono::duration<double>(now - since).count();
  since = now;
  return s;
}

struct Coarse {
  double value = std::numeric_limits<double>::infinity();
  Reason reason = Reason::ok;
};

class Search {
 public:
  Search(const SearchSpace& space, MachineStore& machines, const SearchOptions& options)
      : space_(space), machines_(machines), options_(options), tables_(space) {
    keep_ = static_cast<std::size_t>(std::max(options.finalists, 2 * options.top));
  }

  SearchResult run() {
    Clock::time_point since = Clock::now();
    result_.raw = space_.size();
    candidates_ = generate_candidates(space_, tables_, options_.evaluate.tp_across_nodes, result_.counts);
    result_.rules_s = lap(since);
    tables_.build(candidates_, machines_, options_.threads, result_.counts);
    result_.tables_s = lap(since);
    bound_candidates(space_, tables_, options_.objective, options_.threads, candidates_, result_.counts);
    result_.candidates = static_cast<std::int64_t>(candidates_.size());
    result_.bounds_s = lap(since);
    evaluate_coarsely();
    result_.coarse_s = lap(since);
    evaluate_finalists();
    result_.kernel_s = lap(since);
    return std::move(result_);
  }

 private:
  Coarse coarse(const Candidate& c) const {
    Coarse out;
    try {
      const Scenario s = space_.scenario(c.index);
      const LayerTable& table = tables_.table(c.table);
      StepOptions step;
      step.allow_assumed = options_.evaluate.allow_assumed;
      step.memory.emulated_ranks = 0;
      step.reuse.layers = table.layers;
      step.reuse.chunks = c.chunks->chunks;
      const StepSummary p = predict_step(s, *table.machine, step).summary;
      // The allocator decides at the end; here only what no allocator can avoid.
      if (p.short_by.as_double() > 0.02 * p.capacity.as_double())
        out.reason = Reason::memory;
      else
        out.value = p.step.seconds() * objective_factor(options_.objective, s, *table.machine);
    } catch (const ConfigError& e) {
      const bool assumed = std::string(e.what()).find("no calibration") != std::string::npos;
      out.reason = assumed ? Reason::unanchored : Reason::no_effect;
    }
    return out;
  }

  // The value that a newcomer must beat to be among the best `keep_`.
  double limit() const { return best_.size() < keep_ ? std::numeric_limits<double>::infinity() : best_.back().first; }

  void evaluate_coarsely() {
    std::size_t next = 0;
    while (next < candidates_.size()) {
      if (options_.prune && candidates_[next].bound > limit()) break;
      const std::size_t n = std::min(kBatch, candidates_.size() - next);
      std::vector<Coarse> values(n);
      in_parallel(n, options_.threads, [&](std::size_t i) { values[i] = coarse(candidates_[next + i]); });
      for (std::size_t i = 0; i < n; ++i) {
        ++result_.counts[static_cast<std::size_t>(values[i].reason)];
        if (values[i].reason == Reason::ok) best_.emplace_back(values[i].value, next + i);
      }
      std::sort(best_.begin(), best_.end(), [&](const auto& a, const auto& b) {
        return std::pair(a.first, candidates_[a.second].index) < std::pair(b.first, candidates_[b.second].index);
      });
      if (best_.size() > keep_) best_.resize(keep_);
      next += n;
      if (options_.progress) options_.progress(static_cast<std::int64_t>(next), result_.candidates);
    }
    result_.evaluated = static_cast<std::int64_t>(next);
    result_.counts[static_cast<std::size_t>(Reason::time_bound)] += result_.candidates - result_.evaluated;
  }

  void evaluate_finalists() {
    std::vector<Ranked> finalists(best_.size());
    in_parallel(best_.size(), options_.threads, [&](std::size_t i) {
      const Candidate& c = candidates_[best_[i].second];
      Ranked& r = finalists[i];
      r.index = c.index;
      r.coarse = best_[i].first;
      EvaluateOptions options = options_.evaluate;
      options.keep_graph = true;
      r.evaluation = evaluate(space_.scenario(c.index), machines_, options);
      const Machine& machine = *tables_.table(c.table).machine;
      const double factor = objective_factor(options_.objective, r.evaluation.scenario, machine);
      r.bound_seconds = c.bound / factor;
      if (!r.evaluation.simulated()) return;
      r.value = r.evaluation.prediction.summary.step.seconds() * factor;
      vary_costs(r);
      r.evaluation.prediction.graph.reset();
      r.evaluation.prediction.times.reset();
    });
    result_.simulated = static_cast<std::int64_t>(finalists.size());
    for (Ranked& r : finalists)
      (r.evaluation.reason == Reason::ok ? result_.ranked : result_.misfits).push_back(std::move(r));
    std::stable_sort(result_.ranked.begin(), result_.ranked.end(), [](const Ranked& a, const Ranked& b) {
      return std::pair(a.value, a.index) < std::pair(b.value, b.index);
    });
    mark_pareto(result_.ranked);
  }

  const SearchSpace& space_;
  MachineStore& machines_;
  const SearchOptions& options_;
  CostTables tables_;
  std::vector<Candidate> candidates_;
  std::vector<std::pair<double, std::size_t>> best_;  // value, position in candidates_
  std::size_t keep_ = 0;
  SearchResult result_;
};

}  // namespace

SearchResult search(const SearchSpace& space, MachineStore& machines, const SearchOptions& options) {
  return Search(space, machines, options).run();
}

double objective_factor(Objective objective, const Scenario& s, const Machine& machine) {
  const double gpus = s.cluster.gpus();
  const double tokens = static_cast<double>(s.batch.global_tokens > 0 ? s.batch.global_tokens
                                                                      : s.batch.global_sequences * s.batch.sequence);
  switch (objective) {
    case Objective::step_time:
      return 1.0;
    case Objective::goodput:
      return gpus / tokens / daly_goodput(gpus).share;
    case Objective::cost: {
      const double price =
          s.cluster.price_per_gpu_hour > 0 ? s.cluster.price_per_gpu_hour : machine.gpu.price_per_gpu_hour;
      return gpus * (price > 0 ? price : 1.0) / 3600.0 / tokens;
    }
    case Objective::mfu:
      break;
  }
  const bool fp8 = s.precision.compute.starts_with("fp8") || s.precision.compute == "mxfp8";
  ModelSpec counted = s.model;
  if (!s.mtp) counted.mtp_layers = 0;
  const double flops = 3.0 * model_flops_per_token(counted, s.batch.sequence).value() * tokens;
  return gpus * (fp8 ? machine.gpu.fp8_dense : machine.gpu.bf16_dense).value() / flops;
}

Objective parse_objective(const std::string& name) {
  if (name == "mfu") return Objective::mfu;
  if (name == "step_time") return Objective::step_time;
  if (name == "cost") return Objective::cost;
  if (name == "goodput") return Objective::goodput;
  throw UsageError("--objective '" + name + "': is one of mfu, step_time, cost, goodput");
}

// Errors of both runs are treated as independent: 95 % of step_p95 is 1.645 standard deviations.
bool too_close(const StepSummary& a, const StepSummary& b) {
  const double ra = a.step.seconds(), rb = b.step.seconds();
  const double ea = a.step_p95.seconds() / ra - 1.0, eb = b.step_p95.seconds() / rb - 1.0;
  return std::abs(ra - rb) < std::hypot(ea * ra, eb * rb) * 0.1;
}

}  // namespace k3sim
