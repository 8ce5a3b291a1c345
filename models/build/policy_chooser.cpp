// Chooses and checks the treatments of all ranks. See stage_policies.h. Source: k3-facts 2.4.
#include <algorithm>
#include <map>
#include <utility>

#include "models/build/activation_policy.h"
#include "models/build/breakdown.h"
#include "models/build/own_layers.h"
#include "models/build/remote_pool.h"
#include "models/build/stage_memory.h"
#include "models/build/stage_policies.h"
#include "models/build/step_graph.h"

namespace k3sim {

namespace {

Bytes less(Bytes a, Bytes b) {
  return a > b ? a - b : Bytes(0);
}

// What a prediction says about a plan: bytes that are missing on the fullest GPU and node, then time.
struct Verdict {
  Bytes missing;
  Time step;
  bool better_than(const Verdict& o) const {
    return missing != o.missing ? missing < o.missing : missing == Bytes(0) && step < o.step;
  }
};

Bytes missing_bytes(const StepPlan& plan, const Machine& machine, const std::vector<RankMemory>& memory) {
  const Bytes share = host_share(plan, machine);
  Bytes gpu, host;
  for (const RankMemory& m : memory) {
    gpu = std::max(gpu, m.short_by);
    if (share > Bytes(0)) host = std::max(host, less(m.host(), share));
  }
  return gpu + host;
}

Time step_time(const StepPlan& plan, const Machine& machine) {
  StepGraphOptions options;
  options.detail = StepGraphOptions::Detail::kernel;
  const StepGraph graph = build_step_graph(plan, machine, options);
  return step_period(graph, longest_path(graph.built.graph, graph.built.durations));
}

// The choice's rules, then the user's own.
RecomputePolicy policy_of(const PolicyChoice& choice, std::size_t layer, const PolicyLayer& l,
                          const RecomputePolicy& forced) {
  RecomputePolicy policy = forced;
  policy.full = choice.full;
  if (choice.full) return policy;
  policy.rules.clear();
  for (std::size_t i = 0; i < l.tensors.size(); ++i)
    if (choice.tensors[layer][i] != TensorTreatment{})
      policy.rules.push_back({l.tensors[i].name, choice.tensors[layer][i]});
  policy.rules.insert(policy.rules.end(), forced.rules.begin(), forced.rules.end());
  return policy;
}

class Chooser {
 public:
  Chooser(StepPlan& plan, const Machine& machine)
      : plan_(plan),
        machine_(machine),
        base_(plan.chunks),
        own_(plan, machine),
        forced_(make_recompute_policy(plan.scenario.activation, plan.scenario.model)),
        presets_(activation_presets(plan.scenario.model)) {
    for (int rank = 0; rank < plan.schedule.ranks; ++rank) {
      problems_.push_back(policy_problem(plan_, machine_, rank));
      limits_.push_back(problems_.back().limit);
    }
    plan_.choices.resize(problems_.size());
    closest_.resize(plan_.choices.size());
  }

  // False when the choices are of other layers.
  bool take(const std::vector<PolicyChoice>& choices) {
    if (choices.size() != problems_.size()) return false;
    for (std::size_t r = 0; r < choices.size(); ++r) {
      const std::vector<PolicyLayer>& layers = problems_[r].layers;
      if (!std::equal(layers.begin(), layers.end(), choices[r].tensors.begin(), choices[r].tensors.end(),
                      [](const PolicyLayer& l, const auto& how) { return l.tensors.size() == how.size(); }))
        return false;
    }
    for (std::size_t r = 0; r < choices.size(); ++r) apply(static_cast<int>(r), choices[r]);
    return true;
  }

  void run() {
    const int ranks = plan_.schedule.ranks;
    // Receivers first: what they leave free is room for the ranks that send to them.
    for (int rank = ranks - 1; rank >= 0; --rank) {
      const int partner = remote_partner(plan_.schedule, rank);
      if (partner >= 0) problems_[static_cast<std::size_t>(rank)].remote_limit = room(partner);
      choose(rank);
    }
    for (int round = 0; round < 8 && tighten(); ++round) {
    }
    tighten();
    // Sums and walk may never agree (GPU and host both full): then the choice that came closest.
    for (int rank = 0; rank < ranks; ++rank) apply(rank, closest_[static_cast<std::size_t>(rank)].choice);
  }

  // The allocator may reserve more than the constant says: ranks that are then short search again.
  Verdict run_against_allocator() {
    Verdict best;
    std::vector<Chunk> chunks;
    std::vector<PolicyChoice> choices;
    for (int round = 0; round < 4; ++round) {
      const std::vector<RankMemory> memory = memory_per_rank(plan_, machine_);
      const Bytes missing = missing_bytes(plan_, machine_, memory);
      if (round == 0 || missing < best.missing) best.missing = missing, chunks = plan_.chunks, choices = plan_.choices;
      if (missing == Bytes(0)) break;
      bool changed = false;
      for (const RankMemory& m : memory) {
        PolicyProblem& problem = problems_[static_cast<std::size_t>(m.rank)];
        const Bytes share = host_share(plan_, machine_);
        const Bytes host_short = share > Bytes(0) ? less(m.host(), share) : Bytes(0);
        if (host_short > Bytes(0)) {
          problem.host_limit = std::max(Bytes(1), tightened(problem.host_limit, host_short));
          choose(m.rank);
          changed = true;
        }
        if (m.short_by == Bytes(0)) continue;
        if (shrink_pool(m)) {
          changed = true;
          continue;
        }
        if (problem.limit == Bytes(0)) continue;
        problem.limit = tightened(problem.limit, m.short_by);
        choose(m.rank);
        changed = true;
      }
      if (!changed) break;
    }
    plan_.chunks = std::move(chunks);
    plan_.choices = std::move(choices);
    best.step = step_time(plan_, machine_);
    return best;
  }

  // Sums far above the limit need no whole prediction: the walk finds a few percent more or less.
  bool far_too_large(const NamedPreset& preset) const {
    for (std::size_t r = 0; r < problems_.size(); ++r) {
      PolicyProblem p = problems_[r];
      p.limit = limits_[r];
      if (apply_preset(p, preset.policy).peak.as_double() > 2.0 * p.limit.as_double()) return true;
    }
    return false;
  }

  // What the presets would have done with a rank's tensors, for reports.
  std::vector<PolicyChoice> choices_of(const NamedPreset& preset) const {
    std::vector<PolicyChoice> out;
    for (const PolicyProblem& p : problems_) {
      out.push_back(apply_preset(p, preset.policy));
      out.back().from = preset.name;
    }
    return out;
  }
  const std::vector<NamedPreset>& presets() const { return presets_; }

 private:
  void choose(int rank) { apply(rank, search(problems_[static_cast<std::size_t>(rank)])); }

  void apply(int rank, const PolicyChoice& choice) {
    const PolicyProblem& problem = problems_[static_cast<std::size_t>(rank)];
    plan_.choices[static_cast<std::size_t>(rank)] = choice;
    const std::vector<RankLayer> layers = rank_layers(base_, plan_, rank);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const RecomputePolicy policy = policy_of(choice, l, problem.layers[l], forced_);
      const TimedLayer* timed = policy.any() ? own_.make(layers[l].part, policy) : layers[l].part.timed;
      for (int stage : plan_.schedule.stages_of_rank(rank)) {
        const auto c = static_cast<std::size_t>(plan_.schedule.model_stage(stage));
        for (std::size_t i = 0; i < base_[c].parts.size(); ++i)
          if (base_[c].parts[i].timed == layers[l].part.timed) plan_.chunks[c].parts[i].timed = timed;
        for (std::size_t i = 0; i < base_[c].split.size(); ++i)
          if (base_[c].split[i].timed == layers[l].part.timed) plan_.chunks[c].split[i].timed = timed;
      }
    }
  }

  // Bytes that a rank could hold for another one, with a tenth left for what the walk finds beyond the sums.
  Bytes room(int rank) const {
    const Bytes capacity = plan_.scenario.cluster.memory_override.value_or(machine_.gpu.usable_memory);
    const RankMemory m = counted_memory(plan_, machine_, rank);
    return Bytes(static_cast<std::int64_t>(0.9 * less(capacity, m.reserved + m.outside).as_double()));
  }

  // Neighbouring ranks often hold the same layers under the same limit.
  PolicyChoice search(const PolicyProblem& problem) {
    std::string key = std::to_string(problem.limit.count()) + "/" + std::to_string(problem.host_limit.count()) + "/" +
                      std::to_string(problem.remote ? problem.remote_limit.count() : -1) + "/" +
                      std::to_string(problem.in_flight);
    for (const PolicyLayer& l : problem.layers)
      key += "/" + l.kind + std::to_string(l.count) + "x" + std::to_string(l.in_flight) + ":" +
             std::to_string(l.forward.picoseconds());
    const auto [it, fresh] = searched_.try_emplace(key);
    if (fresh) it->second = search_policies(problem, presets_);
    return it->second;
  }

  // Ranks that the walk finds short although their sums fitted search again under a tighter limit.
  bool tighten() {
    MemoryOptions counted;
    counted.emulated_ranks = 0;
    bool changed = false;
    const Bytes share = host_share(plan_, machine_);
    for (const RankMemory& m : memory_per_rank(plan_, machine_, counted)) {
      PolicyProblem& problem = problems_[static_cast<std::size_t>(m.rank)];
      const Bytes host_short = share > Bytes(0) ? less(m.host(), share) : Bytes(0);
      Closest& closest = closest_[static_cast<std::size_t>(m.rank)];
      const Bytes missing = m.short_by + host_short;
      if (!closest.seen || missing < closest.missing)
        closest = {true, missing, plan_.choices[static_cast<std::size_t>(m.rank)]};
      if (shrink_pool(m)) {
        changed = true;
        continue;
      }
      if (host_short > Bytes(0)) problem.host_limit = std::max(Bytes(1), tightened(problem.host_limit, host_short));
      if (m.short_by > Bytes(0)) problem.limit = tightened(problem.limit, m.short_by);
      if (closest.missing == Bytes(0)) continue;
      if (host_short == Bytes(0) && (m.short_by == Bytes(0) || problem.limit == Bytes(0))) continue;
      choose(m.rank);
      changed = true;
    }
    return changed;
  }

  // A receiver that is short holds less for its sender, which searches again.
  bool shrink_pool(const RankMemory& m) {
    const int sender = plan_.schedule.ranks - 1 - m.rank;
    if (m.short_by == Bytes(0) || m.partner_pool == Bytes(0)) return false;
    problems_[static_cast<std::size_t>(sender)].remote_limit = less(m.partner_pool, m.short_by + m.short_by.share(10));
    closest_[static_cast<std::size_t>(sender)].seen = false;
    choose(sender);
    return true;
  }

  // As if the walk's excess over the sums were proportional.
  static Bytes tightened(Bytes limit, Bytes missing) {
    const double l = limit.as_double();
    return Bytes(static_cast<std::int64_t>(0.98 * l * l / (l + missing.as_double() + 1)));
  }

  struct Closest {
    bool seen = false;
    Bytes missing;  // on the GPU and the host together, by the walk
    PolicyChoice choice;
  };

  StepPlan& plan_;
  const Machine& machine_;
  const std::vector<Chunk> base_;
  OwnLayers own_;
  RecomputePolicy forced_;
  std::vector<NamedPreset> presets_;
  std::vector<PolicyProblem> problems_;
  std::vector<Bytes> limits_;  // as they were before any tightening
  std::map<std::string, PolicyChoice> searched_;
  std::vector<Closest> closest_;
};

// Whether a plan can be told not to fit without emulating the allocator: what is allocated is a lower bound.
bool surely_short(const StepPlan& plan, const Machine& machine) {
  const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
  for (int rank = 0; rank < plan.schedule.ranks; ++rank) {
    const RankMemory m = counted_memory(plan, machine, rank);
    if (m.allocated + m.outside > capacity) return true;
  }
  return false;
}

}  // namespace

void choose_stage_policies(StepPlan& plan, const Machine& machine, const Scenario& scenario,
                           const std::vector<PolicyChoice>* fixed) {
  Chooser chooser(plan, machine);
  if (fixed && chooser.take(*fixed)) return;
  chooser.run();
  Verdict best = chooser.run_against_allocator();
  for (const NamedPreset& preset : chooser.presets()) {
    if (best.missing == Bytes(0) && chooser.far_too_large(preset)) continue;
    Scenario other = scenario;
    other.activation.policy = preset.name;
    StepReuse reuse;
    if (!plan.vision.present()) reuse.schedule = std::make_shared<const Schedule>(plan.schedule);
    StepPlan candidate = make_step_plan(other, machine, reuse);
    Verdict v;
    v.step = step_time(candidate, machine);
    if (best.missing == Bytes(0) && (v.step >= best.step || surely_short(candidate, machine))) continue;
    v.missing = missing_bytes(candidate, machine, memory_per_rank(candidate, machine));
    if (!v.better_than(best)) continue;
    best = v;
    candidate.scenario.activation.policy = scenario.activation.policy;
    candidate.choices = chooser.choices_of(preset);
    plan = std::move(candidate);
  }
}

}  // namespace k3sim
