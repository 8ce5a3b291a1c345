#include "tools/planner/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "models/config/data_files.h"
#include "models/config/yaml_reader.h"
#include "models/failure/goodput.h"
#include "sim/base/error.h"
#include "tools/planner/candidates.h"
#include "tools/planner/coarse.h"

namespace k3sim {

namespace {

constexpr std::size_t kBatch = 64;
constexpr int kSearchedLayouts = 10;  // at least, so that the winner does not depend on how many plans are shown

using Clock = std::chrono::steady_clock;

double lap(Clock::time_point& since) {
  const Clock::time_point now = Clock::now();
  const double s = std::chrono::duration<double>(now - since).count();
  since = now;
  return s;
}

// Coarse times may miss the kernel level's by this much in either direction before the choice of finalists suffers.
constexpr double kSlack = 0.02;

struct Coarse {
  double value = std::numeric_limits<double>::infinity();
  Reason reason = Reason::ok;
};

// What a rank tells the others about a finalist.
struct Judged {
  StepFigures figures;
  double value = 0, low = 0, high = 0;
  Reason reason = Reason::ok;
  char text[240] = {};
};

class Search {
 public:
  Search(const SearchSpace& space, MachineStore& machines, const SearchOptions& options)
      : space_(space),
        machines_(machines),
        options_(options),
        tables_(space),
        threads_(options.threads),
        share_(options.share ? *options.share : threads_) {
    keep_ = static_cast<std::size_t>(std::max(options.finalists, 2 * options.top));
  }

  SearchResult run() {
    Clock::time_point since = Clock::now();
    result_.raw = space_.size();
    Reasons& reasons = result_.reasons;
    reasons.assign(static_cast<std::size_t>(space_.size()), Reason::ok);
    candidates_ = generate_candidates(space_, tables_, options_.evaluate.tp_across_nodes, reasons);
    result_.rules_s = lap(since);
    tables_.build(candidates_, machines_, {options_.threads, options_.evaluate.allow_assumed}, reasons);
    result_.tables_s = lap(since);
    bound_candidates(space_, tables_, options_.objective, options_.threads, candidates_, reasons);
    result_.candidates = static_cast<std::int64_t>(candidates_.size());
    result_.bounds_s = lap(since);
    evaluate_coarsely();
    result_.coarse_s = lap(since);
    evaluate_finalists();
    result_.kernel_s = lap(since);
    result_.counts = count_reasons(reasons);
    return std::move(result_);
  }

 private:
  // Seconds of the step, one task per schedule action where the schedule allows it.
  double coarse_seconds(const SharedSchedule& shared, const StepPlan& plan, const Machine& machine) const {
    if (shared.simple) return shared.step(coarse_costs(plan, machine)).seconds();
    StepOptions step;
    step.allow_assumed = true;  // the tables have been checked
    step.memory.emulated_ranks = 0;
    step.reuse.layers = plan.layers;
    step.reuse.chunks = std::make_shared<const std::vector<Chunk>>(plan.chunks);
    return predict_step(plan.scenario, machine, step).summary.step.seconds();
  }

  // The allocator decides at the end; here only what no allocator can avoid.
  static bool lacks_memory(const StepPlan& plan, const Machine& machine) {
    MemoryOptions options;
    options.emulated_ranks = 0;
    const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
    const int per_node = plan.scenario.cluster.gpus_per_node;
    for (const RankMemory& m : memory_per_rank(plan, machine, options)) {
      if (m.short_by.as_double() > 0.02 * capacity.as_double()) return true;
      const Bytes host = (m.host_activations + m.states.host_optimizer + m.states.host_gradients) * per_node;
      if (machine.host.memory > Bytes(0) && host > machine.host.memory) return true;
    }
    return false;
  }

  Coarse coarse(const Candidate& c, double most) {
    Coarse out;
    try {
      const Scenario s = quick_scenario(space_, c.index);
      const LayerTable& table = tables_.table(c.table);
      const SharedSchedule& shared = schedules_.get(s, c.layout);
      StepReuse reuse;
      reuse.layers = table.layers;
      reuse.chunks = c.chunks->chunks;
      reuse.schedule = shared.brief;
      const StepPlan plan = make_step_plan(s, *table.machine, reuse);
      out.value = coarse_seconds(shared, plan, *table.machine) * factor(s, table);
      if (out.value > most)
        out.reason = Reason::slower;
      else if (lacks_memory(plan, *table.machine))
        out.reason = Reason::memory;
      else
        space_.scenario(c.index);  // throws when it contradicts itself
    } catch (const ConfigError&) {
      out.reason = Reason::no_effect;
    }
    return out;
  }

  double factor(const Scenario& s, const LayerTable& table) const {
    return objective_factor(options_.objective, s, *table.machine, table.flops_per_token);
  }

  // Coarse values above cannot enter the best `keep_`.
  double limit() const {
    const bool open = !options_.prune || best_.size() < keep_;
    return open ? std::numeric_limits<double>::infinity() : best_.back().first * (1.0 + kSlack);
  }

  Reason& reason_of(std::size_t candidate) {
    return result_.reasons[static_cast<std::size_t>(candidates_[candidate].index)];
  }

  void keep_best() {
    std::sort(best_.begin(), best_.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.first, candidates_[a.second].index) < std::pair(b.first, candidates_[b.second].index);
    });
    for (std::size_t i = keep_; i < best_.size(); ++i) reason_of(best_[i].second) = Reason::slower;
    if (best_.size() > keep_) best_.resize(keep_);
  }

  void evaluate_coarsely() {
    std::size_t next = 0;
    while (next < candidates_.size() && candidates_[next].bound <= limit()) {
      const std::size_t n = std::min(kBatch, candidates_.size() - next);
      const double most = limit();
      const auto values = share_.results<Coarse>(n, [&](std::size_t i) { return coarse(candidates_[next + i], most); });
      for (std::size_t i = 0; i < n; ++i) {
        reason_of(next + i) = values[i].reason;
        if (values[i].reason == Reason::ok) best_.emplace_back(values[i].value, next + i);
      }
      keep_best();
      next += n;
      if (options_.progress) options_.progress(static_cast<std::int64_t>(next), result_.candidates);
    }
    result_.evaluated = static_cast<std::int64_t>(next);
    for (; next < candidates_.size(); ++next) reason_of(next) = Reason::time_bound;
  }

  // Kernel level with the emulated allocator, as `run` does it, and the same with all costs 5 % off.
  Judged judge(const Scenario& scenario, const StepReuse& reuse) {
    Judged out;
    EvaluateOptions options = options_.evaluate;
    options.keep_graph = true;
    options.reuse = reuse;
    Ranked r;
    r.evaluation = evaluate(scenario, machines_, options);
    out.reason = r.evaluation.reason;
    r.evaluation.text.copy(out.text, sizeof(out.text) - 1);
    if (!r.evaluation.simulated()) return out;
    out.figures = r.evaluation.prediction.summary;
    out.value = out.figures.step.seconds() * objective_factor(options_.objective, scenario, machines_.get(scenario),
                                                              trained_flops_per_token(scenario));
    vary_costs(r);
    out.low = r.step_low;
    out.high = r.step_high;
    return out;
  }

  static void fill(Ranked& r, const Judged& judged, Scenario scenario) {
    r.scenario_text = scenario.text;
    r.value = judged.value;
    r.step_low = judged.low;
    r.step_high = judged.high;
    r.evaluation.reason = judged.reason;
    r.evaluation.text = judged.text;
    r.evaluation.scenario = std::move(scenario);
    static_cast<StepFigures&>(r.evaluation.prediction.summary) = judged.figures;
  }

  void evaluate_finalists() {
    const auto judged = share_.results<Judged>(best_.size(), [&](std::size_t i) {
      const Candidate& c = candidates_[best_[i].second];
      StepReuse reuse;
      reuse.layers = tables_.table(c.table).layers;
      reuse.chunks = c.chunks->chunks;
      return judge(space_.scenario(c.index), reuse);
    });
    result_.simulated = static_cast<std::int64_t>(judged.size());
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const Candidate& c = candidates_[best_[i].second];
      Scenario s = space_.scenario(c.index);
      Ranked r;
      r.index = c.index;
      r.coarse = best_[i].first;
      r.bound_seconds = c.bound / factor(s, tables_.table(c.table));
      fill(r, judged[i], std::move(s));
      result_.reasons[static_cast<std::size_t>(r.index)] = r.evaluation.reason;
      (r.evaluation.reason == Reason::ok ? result_.ranked : result_.misfits).push_back(std::move(r));
    }
    sort_ranked();
    if (options_.search_policies) search_policies();
    mark_pareto(result_.ranked);
  }

  void sort_ranked() {
    std::stable_sort(result_.ranked.begin(), result_.ranked.end(), [](const Ranked& a, const Ranked& b) {
      return std::tuple(a.value, a.index, a.policy_searched) < std::tuple(b.value, b.index, b.policy_searched);
    });
  }

  // One configuration of every layout among the best: those that differ in the activation policy alone count once.
  std::vector<std::int64_t> best_layouts() const {
    std::set<std::vector<int>> seen;
    std::vector<std::int64_t> out;
    for (const Ranked& r : result_.ranked) {
      if (out.size() == static_cast<std::size_t>(std::max(options_.top, kSearchedLayouts))) break;
      std::vector<int> choice = space_.choice(r.index);
      for (std::size_t a = 0; a < choice.size(); ++a)
        if (is_activation(space_.axes()[a])) choice[a] = 0;
      if (r.evaluation.scenario.activation.policy != "auto" && seen.insert(choice).second) out.push_back(r.index);
    }
    return out;
  }

  static bool is_activation(const SpaceAxis& axis) {
    return std::all_of(axis.values.front().assignments.begin(), axis.values.front().assignments.end(),
                       [](const auto& a) { return a.first.starts_with("activation"); });
  }

  Scenario with_auto(std::int64_t index) const {
    return SearchSpace::parse(space_.scenario_text(index), space_.file(), {"activation={policy: auto}"}).scenario(0);
  }

  // A policy searched per stage joins the ranking where it fits and is faster than what its layout had.
  void search_policies() {
    const std::vector<std::int64_t> layouts = best_layouts();
    const auto judged = share_.results<Judged>(layouts.size(), [&](std::size_t i) {
      Judged none;
      none.reason = Reason::no_effect;
      try {
        return judge(with_auto(layouts[i]), {});
      } catch (const ConfigError&) {
        return none;
      }
    });
    result_.simulated += static_cast<std::int64_t>(layouts.size());
    std::vector<Ranked> better;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const auto base = std::find_if(result_.ranked.begin(), result_.ranked.end(),
                                     [&](const Ranked& other) { return other.index == layouts[i]; });
      if (judged[i].reason != Reason::ok || judged[i].value >= base->value) continue;
      Ranked& r = better.emplace_back();
      r.index = layouts[i];
      r.policy_searched = true;
      r.coarse = base->coarse;
      r.bound_seconds = base->bound_seconds;
      fill(r, judged[i], with_auto(layouts[i]));
    }
    for (Ranked& r : better) result_.ranked.push_back(std::move(r));
    sort_ranked();
  }

  const SearchSpace& space_;
  MachineStore& machines_;
  const SearchOptions& options_;
  CostTables tables_;
  ThreadShare threads_;
  WorkShare& share_;
  ScheduleStore schedules_;
  std::vector<Candidate> candidates_;
  std::vector<std::pair<double, std::size_t>> best_;  // value, position in candidates_
  std::size_t keep_ = 0;
  SearchResult result_;
};

}  // namespace

void ThreadShare::run(std::size_t n, std::size_t, void*, const std::function<void(std::size_t)>& work) {
  in_parallel(n, threads_, work);
}

SearchResult search(const SearchSpace& space, MachineStore& machines, const SearchOptions& options) {
  return Search(space, machines, options).run();
}

double objective_factor(Objective objective, const Scenario& s, const Machine& machine, Flops flops_per_token) {
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
  const double flops = flops_per_token.value() * tokens;
  return gpus * (fp8 ? machine.gpu.fp8_dense : machine.gpu.bf16_dense).value() / flops;
}

Objective parse_objective(const std::string& name) {
  if (name == "mfu") return Objective::mfu;
  if (name == "step_time") return Objective::step_time;
  if (name == "cost") return Objective::cost;
  if (name == "goodput") return Objective::goodput;
  throw UsageError("--objective '" + name + "': is one of mfu, step_time, cost, goodput");
}

double plan_error_correlation() {
  static const double value = [] {
    const YamlDocument doc = YamlDocument::load(data_path("hardware_profiles/plan_errors.yaml"));
    double rho = 0;
    std::string ignored;
    doc.root().require("error_correlation", rho);
    for (const char* note : {"groups", "layouts", "date", "source"}) doc.root().read(note, ignored);
    doc.finish();
    return rho;
  }();
  return value;
}

bool too_close(const StepSummary& a, const StepSummary& b) {
  const double ra = a.step.seconds(), rb = b.step.seconds();
  const double ea = a.step_p95.seconds() - ra, eb = b.step_p95.seconds() - rb;
  return std::abs(ra - rb) < std::sqrt(std::max(0.0, ea * ea + eb * eb - 2.0 * plan_error_correlation() * ea * eb));
}

}  // namespace k3sim
