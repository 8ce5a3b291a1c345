// See remote_pool.h. Source: k3-facts 2.4.
#include "models/build/remote_pool.h"

#include <algorithm>

#include "models/build/own_layers.h"

namespace k3sim {

namespace {

Bytes remote_bytes(const StepPlan& plan, int stage) {
  Bytes sum;
  for (const ChunkPart& p : plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts)
    sum += p.timed->memory->remote_bytes;
  return sum;
}

RecomputePolicy without_remote(RecomputePolicy policy) {
  for (StorageRule& rule : policy.rules)
    if (rule.treatment.place == StoragePlace::remote) rule.treatment.place = StoragePlace::gpu;
  return policy;
}

}  // namespace

int remote_partner(const Schedule& s, int rank) {
  const int mirror = s.ranks - 1 - rank;
  return s.chains == 1 && rank < mirror ? mirror : -1;
}

Bytes remote_peak(const StepPlan& plan, int rank) {
  const Schedule& s = plan.schedule;
  std::vector<Bytes> of_stage(static_cast<std::size_t>(s.stages));
  for (int stage : s.stages_of_rank(rank)) of_stage[static_cast<std::size_t>(stage)] = remote_bytes(plan, stage);
  Bytes now, most;
  for (const Action& a : s.actions[static_cast<std::size_t>(rank)])
    for_each_part(a, [&](const Action& part) {
      if (part.stage < 0) return;
      const Bytes bytes = of_stage[static_cast<std::size_t>(part.stage)];
      if (part.kind == ActionKind::kForward) now += bytes;
      most = std::max(most, now);
      if (yields_input_grad(part.kind)) now = now - bytes;
    });
  return most;
}

Bytes lent_bytes(const StepPlan& plan, int stage) {
  Bytes sum;
  for (const ChunkPart& p : plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts)
    for (const std::uint16_t t : p.timed->memory->held) sum += p.timed->memory->tensors[t].bytes;
  return sum;
}

Bytes lent_peak(const StepPlan& plan, int rank, int keeper) {
  Bytes now, most;
  for (const Action& a : plan.schedule.actions[static_cast<std::size_t>(rank)]) {
    if (a.other_stage != keeper) continue;
    if (a.kind == ActionKind::kOffload) most = std::max(most, now += lent_bytes(plan, a.stage));
    if (a.kind == ActionKind::kOnload) now = now - lent_bytes(plan, a.stage);
  }
  return most;
}

Bytes partner_pool(const StepPlan& plan, int rank) {
  const int sender = plan.schedule.ranks - 1 - rank;
  Bytes pool = remote_partner(plan.schedule, sender) == rank ? remote_peak(plan, sender) : Bytes(0);
  for (int other = 0; other < plan.schedule.ranks; ++other) pool += lent_peak(plan, other, rank);
  return pool;
}

void keep_on_receivers(StepPlan& plan, const Machine& machine) {
  const RecomputePolicy& policy = plan.layers->policy();
  if (std::none_of(policy.rules.begin(), policy.rules.end(),
                   [](const StorageRule& r) { return r.treatment.place == StoragePlace::remote; }))
    return;
  OwnLayers own(plan, machine);
  const RecomputePolicy staying = without_remote(policy);
  for (int rank = 0; rank < plan.schedule.ranks; ++rank) {
    if (remote_partner(plan.schedule, rank) >= 0) continue;
    for (int stage : plan.schedule.stages_of_rank(rank)) {
      Chunk& chunk = plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
      for (std::vector<ChunkPart>* parts : {&chunk.parts, &chunk.split})
        for (ChunkPart& part : *parts)
          if (part.timed->remote > Bytes(0)) part.timed = own.make(part, staying);
    }
  }
}

}  // namespace k3sim
