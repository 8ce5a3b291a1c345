// See stage_policies.h. Source: k3-facts 2.4, 2.5 (rows that wait with a micro-batch).
#include "models/build/stage_policies.h"

#include <algorithm>
#include <map>

#include "models/build/activation_policy.h"
#include "models/build/attnres_flow.h"
#include "models/build/memory_log_states.h"
#include "models/build/overlap_report.h"
#include "models/build/remote_pool.h"
#include "models/build/stage_memory.h"

namespace k3sim {

namespace {

const Chunk& chunk_of(const StepPlan& plan, int stage) {
  return plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
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

Bytes less(Bytes a, Bytes b) {
  return a > b ? a - b : Bytes(0);
}

LayerProgram program_of(const StepPlan& plan, const ChunkPart& part) {
  const ModelSpec& model = plan.scenario.model;
  if (part.kind == ChunkPart::Kind::mtp) return mtp_program(model, plan.split);
  return layer_program(model, static_cast<std::size_t>(part.layer), plan.split);
}

std::string kind_of(const StepPlan& plan, const ChunkPart& part) {
  if (part.kind == ChunkPart::Kind::mtp) return "mtp";
  return layer_kind_name(plan.scenario.model.layers[static_cast<std::size_t>(part.layer)]);
}

}  // namespace

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

std::vector<RankLayer> rank_layers(const std::vector<Chunk>& chunks, const StepPlan& plan, int rank) {
  std::vector<RankLayer> out;
  std::map<int, int> alive = in_flight(plan, rank);
  for (int stage : plan.schedule.stages_of_rank(rank))
    for (const ChunkPart& p : chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts) {
      if (!has_policy(p)) continue;
      const auto it = std::find_if(out.begin(), out.end(), [&](const RankLayer& r) { return r.part.timed == p.timed; });
      if (it == out.end()) {
        out.push_back({p, 1, static_cast<double>(alive[stage])});
        continue;
      }
      ++it->count;
      it->alive += alive[stage];
    }
  return out;
}

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

Bytes host_share(const StepPlan& plan, const Machine& machine) {
  return Bytes(machine.host.memory.count() / std::max(1, plan.scenario.cluster.gpus_per_node));
}

PolicyProblem policy_problem(const StepPlan& plan, const Machine& machine, int rank) {
  PolicyProblem p;
  for (const RankLayer& l : rank_layers(plan.chunks, plan, rank)) {
    p.layers.push_back(policy_layer(program_of(plan, l.part), *l.part.timed, kind_of(plan, l.part)));
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
      if (!has_policy(part)) others += part.timed->saved;
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
  p.remote = remote_partner(plan.schedule, rank) >= 0 && machine.comm.scale_out.nic_payload.value() > 0;
  for (const std::string& word : plan.scenario.activation.forbid) {
    if (word == "fp8") p.fp8 = false;
    if (word == "offload") p.offload = false;
    if (word == "recompute") p.recompute = false;
    if (word == "remote_offload") p.remote = false;
  }
  p.host_rate = machine.gpu.host_link;
  p.network_rate = machine.comm.scale_out.nic_payload;
  const Bytes sample = Bytes::mib(1024);
  const double seconds =
      machine.cost->time(memory_kernel("fp8_store", Pass::forward, MemoryClass::quantize, sample)).time.seconds();
  p.convert_rate = Bandwidth(seconds > 0 ? sample.as_double() / seconds : 0.0);
  return p;
}

}  // namespace k3sim
