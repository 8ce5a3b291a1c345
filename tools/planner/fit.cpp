#include "tools/planner/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/error.h"
#include "tools/planner/candidates.h"
#include "tools/planner/explain.h"

namespace k3sim {

namespace {

// The batch that every data-parallel replica can fill with two rounds of the pipeline.
void set_batch(Scenario& s, int dp) {
  s.batch.global_tokens = 0;
  s.batch.global_sequences = s.batch.micro_batch * dp * 2 * s.parallel.pp;
}

struct Trial {
  Scenario scenario;
  std::vector<RankMemory> memory;
  double step = 0;
  Bytes worst, short_by;
  bool valid = false;
};

void finish(Trial& t) {
  for (const RankMemory& m : t.memory) {
    t.worst = std::max(t.worst, m.reserved + m.outside);
    t.short_by = std::max(t.short_by, m.short_by);
  }
  t.valid = true;
}

Trial simulate(Scenario s, MachineStore& machines) {
  Trial t;
  try {
    StepOptions step;
    step.allow_assumed = true;  // the question is memory; times only rank the knobs
    const StepPrediction p = predict_step(s, machines.get(s), step);
    t.step = p.summary.step.seconds();
    t.memory = p.memory;
    finish(t);
  } catch (const ConfigError&) {
    t.valid = false;
  }
  t.scenario = std::move(s);
  return t;
}

void name_binding(FitAnswer& a) {
  const RankMemory* worst = &a.memory.front();
  for (const RankMemory& m : a.memory)
    if (m.reserved + m.outside > worst->reserved + worst->outside) worst = &m;
  const std::pair<const char*, Bytes> terms[] = {{"weights", worst->states.weights},
                                                 {"gradients", worst->states.gradients},
                                                 {"optimizer states", worst->states.optimizer},
                                                 {"kept activations", worst->activations},
                                                 {"transient tensors", worst->transient},
                                                 {"staging buffers", worst->staging}};
  const auto* most = std::max_element(std::begin(terms), std::end(terms),
                                      [](const auto& x, const auto& y) { return x.second < y.second; });
  a.binding = most->first;
  a.binding_gib = most->second.gibibytes();
}

// Reads overrides into a scenario that is already there; false when they contradict it.
std::optional<Scenario> with_overrides(const Scenario& base, const std::vector<std::string>& overrides) {
  const SearchSpace patch = SearchSpace::parse(base.text, base.file, overrides);
  Scenario s = patch.base();
  s.cluster.nodes = base.cluster.nodes;
  s.parallel.dp = 0;
  s.text = base.text;
  const int dp = s.cluster.gpus() / std::max(1, s.parallel.tp * s.parallel.pp * s.parallel.cp);
  set_batch(s, std::max(1, dp));
  Layout layout;
  if (LayoutRules(s.model).check(s, layout, true) != Reason::ok) return std::nullopt;
  return s;
}

void try_knobs(FitAnswer& answer, const Trial& misfit, MachineStore& machines) {
  const Trial before = simulate(misfit.scenario, machines);
  if (!before.valid) return;
  for (const Knob& knob : memory_knobs()) {
    const std::optional<Scenario> changed = with_overrides(misfit.scenario, knob.overrides);
    if (!changed) continue;
    const Trial after = simulate(*changed, machines);
    if (!after.valid || after.worst >= before.worst) continue;
    const double per_token_before = before.step / static_cast<double>(before.scenario.batch.global_sequences);
    const double per_token_after = after.step / static_cast<double>(after.scenario.batch.global_sequences);
    answer.knobs.push_back({knob.name, (before.worst - after.worst).gibibytes(),
                            100.0 * (per_token_after / per_token_before - 1.0), after.short_by == Bytes(0)});
  }
  std::stable_sort(answer.knobs.begin(), answer.knobs.end(), [](const KnobEffect& a, const KnobEffect& b) {
    return std::pair(!a.fits, a.step_change_pct) < std::pair(!b.fits, b.step_change_pct);
  });
}

class FitSearch {
 public:
  FitSearch(const SearchSpace& space, MachineStore& machines, const FitOptions& options, std::string gpu)
      : space_(space), machines_(machines), options_(options), gpu_(std::move(gpu)), keys_(space) {
    for (std::int64_t i = 0; i < space_.size(); ++i) {
      const Scenario s = quick_scenario(space_, i);
      if (s.cluster.gpu != gpu_) continue;
      const ParallelConfig& p = s.parallel;
      const std::int64_t ranks = std::lcm(std::int64_t{p.tp} * p.cp, std::int64_t{p.ep} * p.etp) * p.pp;
      layouts_.push_back({i, ranks, s.cluster.gpus_per_node});
    }
  }

  FitAnswer find() {
    FitAnswer answer;
    answer.gpu = gpu_;
    std::optional<Trial> nearest;
    for (int nodes = 1; nodes <= options_.most_nodes; ++nodes) {
      const Trial best = best_on(nodes, answer);
      if (!best.valid) continue;
      if (best.short_by > Bytes(0)) {
        nearest = best;
        continue;
      }
      answer.nodes = nodes;
      answer.scenario = best.scenario;
      answer.memory = best.memory;
      answer.capacity = best.scenario.cluster.memory_override.value_or(machines_.get(best.scenario).gpu.usable_memory);
      name_binding(answer);
      break;
    }
    if (options_.knobs && nearest) try_knobs(answer, *nearest, machines_);
    return answer;
  }

 private:
  struct Unit {
    std::int64_t index, ranks;  // the GPUs must be a multiple of `ranks`
    int gpus_per_node;
  };
  struct Shared {
    std::shared_ptr<const LayerSet> layers;
    ChunkTable chunks;
  };

  // The layout with the largest margin: least bound first, exactly until no bound is below the best.
  Trial best_on(int nodes, FitAnswer& answer) {
    std::vector<std::pair<Bytes, std::int64_t>> order;
    for (const Unit& u : layouts_) {
      if (std::int64_t{nodes} * u.gpus_per_node % u.ranks != 0) continue;
      const Scenario s = layout(u.index, nodes);
      Layout l;
      if (LayoutRules(s.model).check(s, l, options_.evaluate.tp_across_nodes) != Reason::ok) continue;
      const Shared* shared = share(u.index, s, l);
      if (shared) order.emplace_back(least_memory(s, stage_map(s, l), l, shared->chunks.costs), u.index);
    }
    std::sort(order.begin(), order.end());
    Trial best;
    for (const auto& [bound, i] : order) {
      if (best.valid && bound >= best.worst) break;
      Scenario s = layout(i, nodes);
      Layout l;
      LayoutRules(s.model).check(s, l, true);
      const Shared& shared = *share(i, s, l);
      Trial t = exact_memory(std::move(s), shared);
      if (!t.valid || (best.valid && t.worst >= best.worst)) continue;
      best = std::move(t);
      best.scenario.text = space_.scenario_text(i);
      answer.index = i;
      answer.layout = layout_text(space_, i);
    }
    return best;
  }

  Trial exact_memory(Scenario s, const Shared& shared) {
    Trial t;
    const Machine& machine = machines_.get(s);
    MemoryOptions memory;
    memory.emulated_ranks = 0;
    try {
      StepReuse reuse;
      reuse.layers = shared.layers;
      reuse.chunks = shared.chunks.chunks;
      t.memory = memory_per_rank(make_step_plan(s, machine, reuse), machine, memory);
    } catch (const ConfigError&) {
      return t;
    }
    finish(t);
    t.scenario = std::move(s);
    return t;
  }

  const Shared* share(std::int64_t index, const Scenario& s, const Layout& l) {
    const auto [it, fresh] = shared_.try_emplace({keys_.key(space_.choice(index), s), l.chunks});
    if (fresh) {
      try {
        const Machine& machine = machines_.get(s);
        it->second.layers = make_layer_set(s, machine);
        it->second.chunks.chunks =
            std::make_shared<const std::vector<Chunk>>(cut_chunks(s, *it->second.layers, l.chunks));
        for (const Chunk& c : *it->second.chunks.chunks) it->second.chunks.costs.push_back(chunk_cost(c, machine));
      } catch (const ConfigError&) {
        it->second.layers.reset();
      }
    }
    return it->second.layers ? &it->second : nullptr;
  }

  Scenario layout(std::int64_t i, int nodes) const {
    Scenario s = quick_scenario(space_, i);
    s.cluster.nodes = nodes;
    s.parallel.dp = 0;
    set_batch(s, std::max(1, s.cluster.gpus() / (s.parallel.tp * s.parallel.pp * s.parallel.cp)));
    return s;
  }

  const SearchSpace& space_;
  MachineStore& machines_;
  const FitOptions& options_;
  std::string gpu_;
  CostTables keys_;
  std::vector<Unit> layouts_;
  std::map<std::pair<std::size_t, int>, Shared> shared_;
};

}  // namespace

const std::vector<Knob>& memory_knobs() {
  static const std::vector<Knob> knobs{
      {"store activations as the unified policy does", {"activation.policy=unified"}},
      {"recompute every layer", {"activation.policy=full"}},
      {"offload kept activations", {"activation.offload=true"}},
      {"gradient shards in host memory", {"optimizer.gradient_shards=cpu"}},
      {"optimizer states in host memory", {"optimizer.states=cpu"}},
      {"shard gradients (zero 2)", {"optimizer.zero=2"}},
      {"shard weights (zero 3)", {"optimizer.zero=3"}},
      {"gradients in BF16", {"optimizer.gradient_bytes=2 B"}},
      {"one sequence per micro-batch", {"batch.micro_batch=1"}},
      {"fewer model chunks per rank", {"parallel.vpp=1"}},
      {"twice the context parallelism", {"parallel.cp=2"}},
  };
  return knobs;
}

std::vector<FitAnswer> smallest_fit(const SearchSpace& space, MachineStore& machines, const FitOptions& options) {
  std::vector<std::string> gpus{space.base().cluster.gpu};
  for (const SpaceAxis& axis : space.axes())
    if (axis.key == "cluster.gpu") {
      gpus.clear();
      for (const SpaceValue& v : axis.values) gpus.push_back(v.text);
    }
  std::vector<FitAnswer> out(gpus.size());
  in_parallel(gpus.size(), options.threads,
              [&](std::size_t i) { out[i] = FitSearch(space, machines, options, gpus[i]).find(); });
  return out;
}

}  // namespace k3sim
