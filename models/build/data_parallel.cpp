// ZeRO stages over the two replication groups, optimizer bytes and the gradient norm. Source: Rajbhandari et al. 2020;
// hardware notes 5.6 (bytes per parameter of AdamW).
#include "models/build/data_parallel.h"

#include <algorithm>

#include "models/build/muon_cost.h"

namespace k3sim {

int DataParallel::shard_ranks(GroupKind group) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  const int all = plan_.placement->group(group).ranks;
  if (o.zero == 0) return 1;
  return o.shard_group > 0 ? std::min(o.shard_group, all) : all;
}

Time DataParallel::over_group(Collective kind, Bytes bytes, GroupKind group) const {
  return plan_.comm->collective(kind, bytes, group).time;
}

Time DataParallel::by_owner(Bytes bytes, std::int64_t parameters, GroupKind group) const {
  const std::int64_t hidden = plan_.scenario.model.hidden;
  const std::int64_t tensors = std::max<std::int64_t>(1, parameters / std::max<std::int64_t>(1, 2 * hidden * hidden));
  const Bytes each((bytes.count() + tensors - 1) / tensors);
  return tensors * plan_.comm->subgroup(Collective::broadcast, each, group, shard_ranks(group), true).time;
}

Time DataParallel::reduce_one(std::int64_t parameters, GroupKind group) const {
  if (parameters == 0) return Time();
  const OptimizerConfig& o = plan_.scenario.optimizer;
  const Bytes gradients = parameters * o.gradient_bytes;
  if (o.zero == 0) return over_group(Collective::all_reduce, gradients, group);
  const int all = plan_.placement->group(group).ranks, shard = shard_ranks(group);
  if (shard == all && o.zero == 1 && machine_.software.owner_updates) return by_owner(gradients, parameters, group);
  if (shard == all) return over_group(Collective::reduce_scatter, gradients, group);
  Time t = plan_.comm->subgroup(Collective::reduce_scatter, gradients, group, shard, true).time;
  return t + plan_.comm->subgroup(Collective::all_reduce, gradients.share(shard), group, all / shard, false).time;
}

Time DataParallel::gather_one(std::int64_t parameters, GroupKind group) const {
  if (parameters == 0 || plan_.scenario.optimizer.zero == 0) return Time();
  const Bytes values = gathered_bytes(parameters);
  if (plan_.scenario.optimizer.zero == 1 && machine_.software.owner_updates) return by_owner(values, parameters, group);
  return plan_.comm->subgroup(Collective::all_gather, values, group, shard_ranks(group), true).time;
}

Bytes DataParallel::gathered_bytes(std::int64_t parameters) const {
  if (plan_.scenario.precision.fp8_parameters) return Bytes(parameters);
  return parameters * std::min(plan_.scenario.optimizer.parameter_bytes, Bytes(2));
}

Time DataParallel::reduce(const ParameterCount& p) const {
  return reduce_one(p.dense, GroupKind::dp) + reduce_one(p.experts, GroupKind::expert_dp);
}

Time DataParallel::gather(const ParameterCount& p) const {
  return gather_one(p.dense, GroupKind::dp) + gather_one(p.experts, GroupKind::expert_dp);
}

Time DataParallel::elementwise(std::int64_t parameters) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  Kernel k;
  k.family = KernelFamily::optimizer;
  k.name = "optimizer_update";
  k.dtype = Dtype::fp32;
  k.m = parameters;
  k.bytes = parameters * (o.parameter_bytes + o.gradient_bytes + 2 * o.state_bytes);
  // The global gradient norm reads every gradient once more.
  return machine_.cost->time(k).time + parameters * o.gradient_bytes / machine_.gpu.hbm;
}

// Shards cut through matrices: an owner fetches the parts of its matrices that other ranks hold, point to point and
// chunk by chunk beside the iterations (or everybody gathers everything).
Time DataParallel::matrix_fetch(std::int64_t dense, std::int64_t experts) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  if (o.zero == 0) return Time();
  const bool owned = o.muon_fetch == "owned";
  const auto one = [&](std::int64_t parameters, GroupKind group) {
    const int shards = shard_ranks(group);
    if (shards <= 1 || parameters == 0) return Time();
    const Bytes all = parameters * o.gradient_bytes;
    if (!owned) return plan_.comm->subgroup(Collective::all_gather, all, group, shards, true).time;
    return plan_.comm->pipeline_hop(Bytes(all.count() / shards / shards * (shards - 1))).time;
  };
  return one(dense, GroupKind::dp) + one(experts, GroupKind::expert_dp);
}

// States in host memory come up and go back while the update runs; CPU gradient shards come up with them.
Time DataParallel::host_states(std::int64_t own) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  Bytes moved;
  if (o.states == "cpu") moved += own * o.state_bytes;
  if (o.gradient_shards == "cpu") moved += own * o.gradient_bytes;
  return moved > Bytes(0) ? moved / machine_.gpu.host_link : Time();
}

Time DataParallel::optimizer(const std::vector<const Chunk*>& chunks) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  if (o.name == "none") return Time();
  std::int64_t dense = 0, experts = 0;
  for (const Chunk* c : chunks) {
    const ParameterCount p = c->owned();
    dense += p.dense;
    experts += p.experts;
  }
  const std::int64_t dense_shards = shard_ranks(GroupKind::dp), expert_shards = shard_ranks(GroupKind::expert_dp);
  const std::int64_t own = (dense + dense_shards - 1) / dense_shards + (experts + expert_shards - 1) / expert_shards;
  if (own == 0) return Time();
  Time t = elementwise(own);
  if (o.name == "muon" || o.name == "muon_per_head")
    t = std::max(t + muon_time(plan_, machine_, chunks, dense_shards, expert_shards), matrix_fetch(dense, experts));
  return std::max(t, host_states(own));
}

Time DataParallel::norm_all_reduce() const {
  CommGroup world;
  world.ranks = plan_.placement->world();
  world.ranks_per_node = std::min(world.ranks, plan_.scenario.cluster.gpus_per_node);
  world.nodes = (world.ranks + world.ranks_per_node - 1) / world.ranks_per_node;
  return collective_time(machine_.comm, Collective::all_reduce, Bytes(8), world).time;
}

}  // namespace k3sim
