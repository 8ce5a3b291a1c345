// See stage_policies.h. Source: k3-facts 2.4, 2.5 (rows that wait with a micro-batch).
#include "models/build/stage_policies.h"

#include <algorithm>
#include <map>

#include "models/build/activation_policy.h"
#include "models/build/attnres_flow.h"
#include "models/build/memory_log_states.h"
#include "models/build/overlap_report.h"
#include "models/build/stage_memory.h"

namespace k3sim {

namespace {

const Chunk& chunk_of(const StepPlan& plan, int stage) {
  return plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
}

// Forwards of every stage of the rank that wait for their backward when most wait in all.
std::map<int, int> in_flight(const StepPlan& plan, int rank) {
  std::map<int, int> alive, at_peak;
  int all = 0, most = 0;
  for (const Action& a : plan.schedule.actions[static_cast<std::size_t>(rank)])
    for_each_part(a, [&](const Action& part) {
      if (part.kind == ActionKind::kForward) {
        ++alive[part.stage];
        if (++all > most) most = all, at_peak = alive;
      }
      if (yields_weight_grad(part.kind)) --alive[part.stage], --all;
    });
  return at_peak;
}

PolicyLayer policy_layer(const LayerProgram& program, const TimedLayer& timed, std::string kind) {
  PolicyLayer out;
  out.kind = std::move(kind);
  out.tensors = program.saved;
  out.forward = timed.forward.summary.elapsed;
  out.backward = timed.backward.summary.elapsed;
  out.workspace = timed.workspace;
  for (const TimedItem& item : timed.forward.items) out.replay[static_cast<std::size_t>(item.module)] += item.time;
  return out;
}

// Layers of a rank by the timed layer they share, in model order of the first of each.
struct RankLayer {
  int layer = -1;  // decoder layer that stands for all
  int count = 0;
  double alive = 0;  // micro-batches, summed over the layers
  const TimedLayer* timed = nullptr;
};

std::vector<RankLayer> rank_layers(const std::vector<Chunk>& chunks, const StepPlan& plan, int rank) {
  std::vector<RankLayer> out;
  std::map<int, int> alive = in_flight(plan, rank);
  for (int stage : plan.schedule.stages_of_rank(rank))
    for (const ChunkPart& p : chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts) {
      if (p.kind != ChunkPart::Kind::layer) continue;
      const auto it = std::find_if(out.begin(), out.end(), [&](const RankLayer& r) { return r.timed == p.timed; });
      if (it == out.end()) {
        out.push_back({p.layer, 1, static_cast<double>(alive[stage]), p.timed});
        continue;
      }
      ++it->count;
      it->alive += alive[stage];
    }
  return out;
}

// Host memory of the node for each of its GPUs; 0: not stated.
Bytes host_share(const StepPlan& plan, const Machine& machine) {
  return Bytes(machine.host.memory.count() / std::max(1, plan.scenario.cluster.gpus_per_node));
}

Bytes less(Bytes a, Bytes b) {
  return a > b ? a - b : Bytes(0);
}

RecomputePolicy policy_of(const PolicyChoice& choice, std::size_t layer, const PolicyLayer& l) {
  RecomputePolicy policy;
  policy.full = choice.full;
  if (choice.full) return policy;
  for (std::size_t i = 0; i < l.tensors.size(); ++i)
    if (choice.tensors[layer][i] != TensorTreatment{})
      policy.rules.push_back({l.tensors[i].name, choice.tensors[layer][i]});
  return policy;
}

class Chooser {
 public:
  Chooser(StepPlan& plan, const Machine& machine)
      : plan_(plan),
        machine_(machine),
        base_(plan.chunks),
        comm_(*plan.comm),
        presets_(activation_presets(plan.scenario.model)) {
    comm_.set_moe(plan.layers->moe());
    plan_.own_layers = std::make_shared<std::deque<TimedLayer>>();
    plan_.choices.resize(static_cast<std::size_t>(plan.schedule.ranks));
    closest_.resize(plan_.choices.size());
  }

  void run() {
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank) problems_.push_back(policy_problem(plan_, machine_, rank));
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank) choose(rank);
    for (int round = 0; round < 8 && tighten(); ++round) {
    }
    tighten();
    // Sums and walk may never agree (GPU and host both full): then the choice that came closest.
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank)
      apply(rank, closest_[static_cast<std::size_t>(rank)].choice);
  }

 private:
  void choose(int rank) { apply(rank, search(problems_[static_cast<std::size_t>(rank)])); }

  void apply(int rank, const PolicyChoice& choice) {
    const PolicyProblem& problem = problems_[static_cast<std::size_t>(rank)];
    plan_.choices[static_cast<std::size_t>(rank)] = choice;
    const std::vector<RankLayer> layers = rank_layers(base_, plan_, rank);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const TimedLayer* timed = make_layer(layers[l], policy_of(choice, l, problem.layers[l]));
      for (int stage : plan_.schedule.stages_of_rank(rank)) {
        const auto c = static_cast<std::size_t>(plan_.schedule.model_stage(stage));
        for (std::size_t i = 0; i < base_[c].parts.size(); ++i)
          if (base_[c].parts[i].timed == layers[l].timed) plan_.chunks[c].parts[i].timed = timed;
        for (std::size_t i = 0; i < base_[c].split.size(); ++i)
          if (base_[c].split[i].timed == layers[l].timed) plan_.chunks[c].split[i].timed = timed;
      }
    }
  }

  // Neighbouring ranks often hold the same layers under the same limit.
  PolicyChoice search(const PolicyProblem& problem) {
    std::string key = std::to_string(problem.limit.count()) + "/" + std::to_string(problem.host_limit.count()) + "/" +
                      std::to_string(problem.in_flight);
    for (const PolicyLayer& l : problem.layers)
      key += "/" + l.kind + std::to_string(l.count) + "x" + std::to_string(l.in_flight) + ":" +
             std::to_string(l.forward.picoseconds());
    const auto [it, fresh] = searched_.try_emplace(key);
    if (fresh) it->second = search_policies(problem, presets_);
    return it->second;
  }

  const TimedLayer* make_layer(const RankLayer& l, const RecomputePolicy& policy) {
    if (!policy.any()) return l.timed;
    std::string key = std::to_string(l.layer) + (policy.full ? "full" : "");
    for (const StorageRule& r : policy.rules) key += "|" + r.match + to_string(r.treatment);
    const auto [it, fresh] = made_.try_emplace(key, nullptr);
    if (fresh) {
      plan_.own_layers->push_back(
          time_layer(layer_program(plan_.scenario.model, static_cast<std::size_t>(l.layer), plan_.split), policy,
                     plan_.layers->options(), machine_, comm_));
      plan_.own_layers->back().moe = l.timed->moe;
      it->second = &plan_.own_layers->back();
    }
    return it->second;
  }

  // Ranks that the walk finds short although their sums fitted search again under a tighter limit.
  bool tighten() {
    MemoryOptions counted;
    counted.emulated_ranks = 0;
    bool changed = false;
    for (const RankMemory& m : memory_per_rank(plan_, machine_, counted)) {
      PolicyProblem& problem = problems_[static_cast<std::size_t>(m.rank)];
      const Bytes share = host_share(plan_, machine_);
      const Bytes on_host = m.host_activations + m.states.host_optimizer + m.states.host_gradients;
      const Bytes host_short = share > Bytes(0) ? less(on_host, share) : Bytes(0);
      Closest& closest = closest_[static_cast<std::size_t>(m.rank)];
      const Bytes missing = m.short_by + host_short;
      if (!closest.seen || missing < closest.missing)
        closest = {true, missing, plan_.choices[static_cast<std::size_t>(m.rank)]};
      if (host_short > Bytes(0)) problem.host_limit = std::max(Bytes(1), tightened(problem.host_limit, host_short));
      if (m.short_by > Bytes(0)) problem.limit = tightened(problem.limit, m.short_by);
      if (closest.missing == Bytes(0)) continue;
      if (host_short == Bytes(0) && (m.short_by == Bytes(0) || problem.limit == Bytes(0))) continue;
      choose(m.rank);
      changed = true;
    }
    return changed;
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
  CommCoster comm_;
  std::vector<NamedPreset> presets_;
  std::vector<PolicyProblem> problems_;
  std::map<std::string, const TimedLayer*> made_;
  std::map<std::string, PolicyChoice> searched_;
  std::vector<Closest> closest_;
};

}  // namespace

std::vector<NamedPreset> activation_presets(const ModelSpec& model) {
  std::vector<NamedPreset> out;
  for (const char* name : {"keep_all", "selective", "full_recompute", "k2", "k3_unified"}) {
    ActivationConfig config;
    config.policy = name;
    const RecomputePolicy p = make_recompute_policy(config, model);
    StoragePolicy s;
    s.full = p.full;
    s.fp8 = p.fp8;
    s.offload = p.offload;
    s.modules = p.modules;
    out.push_back({name, s});
  }
  return out;
}

PolicyProblem policy_problem(const StepPlan& plan, const Machine& machine, int rank) {
  PolicyProblem p;
  for (const RankLayer& l : rank_layers(plan.chunks, plan, rank)) {
    const auto index = static_cast<std::size_t>(l.layer);
    p.layers.push_back(policy_layer(layer_program(plan.scenario.model, index, plan.split), *l.timed,
                                    layer_kind_name(plan.scenario.model.layers[index])));
    p.layers.back().count = l.count;
    p.layers.back().in_flight = l.alive / l.count;
  }
  int alive = 0;
  for (const auto& [stage, n] : in_flight(plan, rank)) alive += n;
  p.in_flight = alive / static_cast<double>(std::max<std::size_t>(1, plan.schedule.stages_of_rank(rank).size()));
  const StateBytes states = state_bytes(state_shape(plan, rank), plan.scenario.optimizer);
  const StageBoundaries boundaries = stage_boundaries(plan);
  Bytes rows, others;
  for (int stage : plan.schedule.stages_of_rank(rank)) {
    rows += boundaries.held_rows[static_cast<std::size_t>(stage)];
    for (const ChunkPart& part : chunk_of(plan, stage).parts)
      if (part.kind != ChunkPart::Kind::layer) others += part.timed->saved;
  }
  const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
  const double inside =
      less(capacity, outside_allocator(plan, machine)).as_double() / (1.0 + machine.software.fragmentation);
  const Bytes fixed =
      states.gpu() + machine.software.workspace_memory + Bytes::ceil((rows + others).as_double() * p.in_flight);
  p.limit = less(Bytes(static_cast<std::int64_t>(inside)), fixed);
  const Bytes share = host_share(plan, machine);
  if (share > Bytes(0)) {
    p.host_limit = std::max(Bytes(1), less(share, states.host_optimizer + states.host_gradients));
  }
  for (const std::string& word : plan.scenario.activation.forbid) {
    if (word == "fp8") p.fp8 = false;
    if (word == "offload") p.offload = false;
    if (word == "recompute") p.recompute = false;
  }
  p.host_rate = machine.gpu.host_link;
  p.network_rate = machine.comm.scale_out.nic_payload;
  const Bytes sample = Bytes::mib(1024);
  const double seconds =
      machine.cost->time(memory_kernel("fp8_store", Pass::forward, MemoryClass::quantize, sample)).time.seconds();
  p.convert_rate = Bandwidth(seconds > 0 ? sample.as_double() / seconds : 0.0);
  return p;
}

void choose_stage_policies(StepPlan& plan, const Machine& machine) {
  Chooser(plan, machine).run();
}

}  // namespace k3sim
