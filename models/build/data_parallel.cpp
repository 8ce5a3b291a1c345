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

namespace {

void add(DataTraffic& out, const CommCost& cost) {
  out.time += cost.time;
  if (cost.traffic.kind != TrafficKind::none) out.flows.push_back(cost.traffic);
}

}  // namespace

// One call per tensor, one after the other.
CommCost DataParallel::by_owner(Bytes bytes, std::int64_t parameters, GroupKind group) const {
  // Tensor parallelism cuts the matrices of about two squares of the hidden size, it does not make them fewer.
  const std::int64_t hidden = plan_.scenario.model.hidden, matrix = 2 * hidden * hidden / plan_.split.tp;
  const std::int64_t tensors = std::max<std::int64_t>(1, parameters / std::max<std::int64_t>(1, matrix));
  const Bytes each((bytes.count() + tensors - 1) / tensors);
  CommCost cost = plan_.comm->subgroup(Collective::broadcast, each, group, shard_ranks(group), true);
  // Frameworks issue the calls one by one: small-message latency as under an eager framework (hardware notes 3.2).
  const Time issued = scale(cost.traffic.latency, machine_.comm.slow_stack_factor);
  cost.time += issued - cost.traffic.latency;
  cost.traffic.alone += issued - cost.traffic.latency;
  cost.traffic.latency = issued;
  cost.time = tensors * cost.time;
  cost.traffic.bytes *= static_cast<double>(tensors);
  cost.traffic.latency = tensors * cost.traffic.latency;
  cost.traffic.alone = tensors * cost.traffic.alone;
  return cost;
}

void DataParallel::reduce_one(std::int64_t parameters, GroupKind group, DataTraffic& out) const {
  if (parameters == 0) return;
  const OptimizerConfig& o = plan_.scenario.optimizer;
  const Bytes gradients = parameters * o.gradient_bytes;
  if (o.zero == 0) return add(out, plan_.comm->collective(Collective::all_reduce, gradients, group));
  const int all = plan_.placement->group(group).ranks, shard = shard_ranks(group);
  if (shard == all && o.zero == 1 && machine_.software.owner_updates)
    return add(out, by_owner(gradients, parameters, group));
  if (shard == all) return add(out, plan_.comm->collective(Collective::reduce_scatter, gradients, group));
  add(out, plan_.comm->subgroup(Collective::reduce_scatter, gradients, group, shard, true));
  add(out, plan_.comm->subgroup(Collective::all_reduce, gradients.share(shard), group, all / shard, false));
}

void DataParallel::gather_one(std::int64_t parameters, GroupKind group, DataTraffic& out) const {
  if (parameters == 0 || plan_.scenario.optimizer.zero == 0) return;
  const Bytes values = gathered_bytes(parameters);
  if (plan_.scenario.optimizer.zero == 1 && machine_.software.owner_updates)
    return add(out, by_owner(values, parameters, group));
  add(out, plan_.comm->subgroup(Collective::all_gather, values, group, shard_ranks(group), true));
}

Bytes DataParallel::gathered_bytes(std::int64_t parameters) const {
  if (plan_.scenario.precision.fp8_parameters) return Bytes(parameters);
  return parameters * std::min(plan_.scenario.optimizer.parameter_bytes, Bytes(2));
}

DataTraffic DataParallel::reduce(const ParameterCount& p) const {
  DataTraffic out;
  reduce_one(p.dense, GroupKind::dp, out);
  reduce_one(p.experts, GroupKind::expert_dp, out);
  return out;
}

DataTraffic DataParallel::gather(const ParameterCount& p) const {
  DataTraffic out;
  gather_one(p.dense, GroupKind::dp, out);
  gather_one(p.experts, GroupKind::expert_dp, out);
  return out;
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
DataTraffic DataParallel::matrix_fetch(std::int64_t dense, std::int64_t experts) const {
  DataTraffic out;
  const OptimizerConfig& o = plan_.scenario.optimizer;
  if (o.zero == 0) return out;
  const bool owned = o.muon_fetch == "owned";
  const auto one = [&](std::int64_t parameters, GroupKind group) {
    const int shards = shard_ranks(group);
    if (shards <= 1 || parameters == 0) return;
    const Bytes all = parameters * o.gradient_bytes;
    CommCost gather = plan_.comm->subgroup(Collective::all_gather, all, group, shards, true);
    if (!owned) return add(out, gather);
    const CommCost own = plan_.comm->pipeline_hop(Bytes(all.count() / shards / shards * (shards - 1)));
    // Owners are spread over the group: each sends to and receives from all of them what it would send in one message.
    gather.traffic.collective = Collective::all_to_all;
    gather.traffic.algorithm = Algorithm::direct;
    gather.traffic.bytes = own.traffic.bytes * shards / (shards - 1);
    gather.traffic.latency = own.traffic.latency;
    gather.traffic.alone = own.traffic.alone;
    gather.time = own.time;
    add(out, gather);
  };
  one(dense, GroupKind::dp);
  one(experts, GroupKind::expert_dp);
  return out;
}

// States in host memory come up and go back while the update runs; CPU gradient shards come up with them.
Bytes DataParallel::host_states(std::int64_t own) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  Bytes moved;
  if (o.states == "cpu") moved += own * o.state_bytes;
  if (o.gradient_shards == "cpu") moved += own * o.gradient_bytes;
  return moved;
}

OptimizerWork DataParallel::optimizer_work(const std::vector<const Chunk*>& chunks) const {
  const OptimizerConfig& o = plan_.scenario.optimizer;
  OptimizerWork work;
  if (o.name == "none") return work;
  std::int64_t dense = 0, experts = 0;
  for (const Chunk* c : chunks) {
    const ParameterCount p = c->owned();
    dense += p.dense;
    experts += p.experts;
  }
  const std::int64_t dense_shards = shard_ranks(GroupKind::dp), expert_shards = shard_ranks(GroupKind::expert_dp);
  const std::int64_t own = (dense + dense_shards - 1) / dense_shards + (experts + expert_shards - 1) / expert_shards;
  if (own == 0) return work;
  work.kernels = elementwise(own);
  if (o.name == "muon" || o.name == "muon_per_head") {
    work.kernels += muon_time(plan_, machine_, chunks, dense_shards, expert_shards);
    work.fetch = matrix_fetch(dense, experts);
  }
  work.host = host_states(own);
  return work;
}

Time DataParallel::optimizer(const std::vector<const Chunk*>& chunks) const {
  const OptimizerWork work = optimizer_work(chunks);
  const Time host = work.host > Bytes(0) ? work.host / machine_.gpu.host_link : Time();
  return std::max({work.kernels, work.fetch.time, host});
}

Time DataParallel::norm_all_reduce() const {
  CommGroup world;
  world.ranks = plan_.placement->world();
  world.ranks_per_node = std::min(world.ranks, plan_.scenario.cluster.gpus_per_node);
  world.nodes = (world.ranks + world.ranks_per_node - 1) / world.ranks_per_node;
  return collective_time(machine_.comm, Collective::all_reduce, Bytes(8), world).time;
}

}  // namespace k3sim
