// Parameter gather, gradient reduction and optimizer time of one rank.
//
//   zero 0   all-reduce of gradients; every rank updates everything
//   zero 1   reduce-scatter of gradients, update of the own shard, all-gather of parameters
//   zero 2   as 1, gradients kept sharded: reduced after every micro-batch; several chunks per rank: after every run
//   zero 3   parameters gathered per layer before forward (and backward), gradients reduce-scattered per layer
//   zero 1 by whole tensors (software owner_updates): every tensor is reduced to its owner and broadcast from it, one
//            call each over all ranks of the group; NCCL does both in rings only, so each pays the latency of the ring
//            (InternEvo, hybrid_zero_optim; a tensor has about 2 hidden^2 elements)
// shard_group < dp: sharding inside the group, all-reduce of the shard across groups (HSDP). Dense parameters use
// the dp x cp group, routed experts the expert-dp group: the two differ (k3-facts; product requirement "expert-DP is
// not DP"). AdamW moves parameter_bytes + gradient_bytes + 2 x state_bytes per parameter (hardware notes 5.6).
// Muon: five Newton-Schulz iterations, 5 (4 m^2 n + 2 m^3) FLOPs per m x n matrix (m <= n), k3-facts 2.10.
// States or gradient shards in host memory cross PCIe once in each direction during the update.
// Source: Rajbhandari et al. 2020 (ZeRO); hardware notes 3.2, 5.6.
#pragma once

#include "models/build/step_plan.h"

namespace k3sim {

struct DataTraffic {
  Time time;  // on an empty network
  TrafficList flows;
};

// The update of one rank: kernels, and beside them matrices fetched from other owners and states in host memory.
struct OptimizerWork {
  Time kernels;
  DataTraffic fetch;
  Bytes host;  // comes up and goes back
};

class DataParallel {
 public:
  DataParallel(const StepPlan& plan, const Machine& machine) : plan_(plan), machine_(machine) {}

  DataTraffic reduce(const ParameterCount& parameters) const;  // gradients of these parameters
  DataTraffic gather(const ParameterCount& parameters) const;  // their updated (or sharded) values
  OptimizerWork optimizer_work(const std::vector<const Chunk*>& chunks) const;
  Time optimizer(const std::vector<const Chunk*>& chunks) const;  // all of it at once
  Bytes gathered_bytes(std::int64_t parameters) const;            // the buffer of that gather
  Time norm_all_reduce() const;  // global gradient norm: one small all-reduce over all ranks
  bool sharded_parameters() const { return plan_.scenario.optimizer.zero >= 3; }
  bool reduce_every_microbatch() const { return plan_.scenario.optimizer.zero >= 2 && !reduces_by_chunk(plan_); }
  int shard_ranks(GroupKind group) const;

 private:
  void reduce_one(std::int64_t parameters, GroupKind group, DataTraffic& out) const;
  CommCost by_owner(Bytes bytes, std::int64_t parameters, GroupKind group) const;
  void gather_one(std::int64_t parameters, GroupKind group, DataTraffic& out) const;
  DataTraffic matrix_fetch(std::int64_t dense, std::int64_t experts) const;
  Bytes host_states(std::int64_t own) const;
  Time elementwise(std::int64_t parameters) const;

  const StepPlan& plan_;
  const Machine& machine_;
};

}  // namespace k3sim
