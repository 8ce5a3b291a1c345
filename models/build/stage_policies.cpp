// See stage_policies.h. Source: k3-facts 2.4, 2.5 (rows that wait with a micro-batch).
#include "models/build/stage_policies.h"

#include <algorithm>
#include <map>

#include "models/build/activation_policy.h"
#include "models/build/attnres_flow.h"
#include "models/build/memory_log_states.h"
#include "models/build/stage_memory.h"

namespace k3sim {

namespace {

const Chunk& chunk_of(const StepPlan& plan, int stage) {
  return plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
}

// Most forwards of any of the rank's stages that wait for their backward, per stage.
double in_flight(const StepPlan& plan, int rank) {
  int alive = 0, most = 0;
  for (const Action& a : plan.schedule.actions[static_cast<std::size_t>(rank)])
    for_each_part(a, [&](const Action& part) {
      if (part.kind == ActionKind::kForward) most = std::max(most, ++alive);
      if (yields_weight_grad(part.kind)) --alive;
    });
  return static_cast<double>(most) /
         static_cast<double>(std::max<std::size_t>(1, plan.schedule.stages_of_rank(rank).size()));
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

std::string kind_name(const LayerSpec& layer) {
  const char* attention = layer.attention.kind == AttentionKind::kda   ? "kda"
                          : layer.attention.kind == AttentionKind::mla ? "mla"
                                                                       : "mha";
  return std::string(attention) + (layer.ffn.is_moe() ? "+moe" : "+dense");
}

// Layers of a rank by the timed layer they share, in model order of the first of each.
struct RankLayer {
  int layer = -1;  // decoder layer that stands for all
  int count = 0;
  const TimedLayer* timed = nullptr;
};

std::vector<RankLayer> rank_layers(const std::vector<Chunk>& chunks, const StepPlan& plan, int rank) {
  std::vector<RankLayer> out;
  for (int stage : plan.schedule.stages_of_rank(rank))
    for (const ChunkPart& p : chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts) {
      if (p.kind != ChunkPart::Kind::layer) continue;
      const auto it = std::find_if(out.begin(), out.end(), [&](const RankLayer& r) { return r.timed == p.timed; });
      if (it != out.end())
        ++it->count;
      else
        out.push_back({p.layer, 1, p.timed});
    }
  return out;
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
  }

  void run() {
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank) problems_.push_back(policy_problem(plan_, machine_, rank));
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank) choose(rank);
    for (int round = 0; round < 3 && tighten(); ++round) {
    }
  }

 private:
  void choose(int rank) {
    const PolicyProblem& problem = problems_[static_cast<std::size_t>(rank)];
    PolicyChoice& choice = plan_.choices[static_cast<std::size_t>(rank)];
    choice = search(problem);
    const std::vector<RankLayer> layers = rank_layers(base_, plan_, rank);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const TimedLayer* timed = make_layer(layers[l], policy_of(choice, l, problem.layers[l]));
      for (int stage : plan_.schedule.stages_of_rank(rank)) {
        const auto c = static_cast<std::size_t>(plan_.schedule.model_stage(stage));
        for (std::size_t i = 0; i < base_[c].parts.size(); ++i)
          if (base_[c].parts[i].timed == layers[l].timed) plan_.chunks[c].parts[i].timed = timed;
      }
    }
  }

  // Neighbouring ranks often hold the same layers under the same limit.
  PolicyChoice search(const PolicyProblem& problem) {
    std::string key = std::to_string(problem.limit.count()) + "/" + std::to_string(problem.in_flight);
    for (const PolicyLayer& l : problem.layers)
      key += "/" + l.kind + std::to_string(l.count) + ":" + std::to_string(l.forward.picoseconds());
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
      if (m.short_by == Bytes(0) || problem.limit == Bytes(0)) continue;
      problem.limit = less(problem.limit, scale_bytes(m.short_by, 1.05));
      choose(m.rank);
      changed = true;
    }
    return changed;
  }

  static Bytes scale_bytes(Bytes b, double f) { return Bytes::ceil(b.as_double() * f); }

  StepPlan& plan_;
  const Machine& machine_;
  const std::vector<Chunk> base_;
  CommCoster comm_;
  std::vector<NamedPreset> presets_;
  std::vector<PolicyProblem> problems_;
  std::map<std::string, const TimedLayer*> made_;
  std::map<std::string, PolicyChoice> searched_;
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
                                    kind_name(plan.scenario.model.layers[index])));
    p.layers.back().count = l.count;
  }
  p.in_flight = in_flight(plan, rank);
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
  if (machine.host.memory > Bytes(0)) {
    const Bytes share(machine.host.memory.count() / std::max(1, plan.scenario.cluster.gpus_per_node));
    p.host_limit = std::max(Bytes(1), less(share, states.host_optimizer + states.host_gradients));
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
