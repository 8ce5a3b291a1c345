// Expert exchanges with node de-duplication and the hand-over to the collective model. Source: hardware notes 3.5
// (fixed costs, two-hop rule), k3-facts 3.6 (distinct destinations). Balanced routing; skew enters as ratios.
#include "models/build/comm_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {

CommCoster::CommCoster(const Machine& machine, const Scenario& scenario, const Placement& placement)
    : machine_(machine), placement_(placement), dispatcher_(scenario.moe.dispatcher) {
  network_share_ = 1.0 / std::max(1.0, scenario.cluster.oversubscription);
}

CommGroup CommCoster::group(GroupKind kind) const {
  const GroupPlacement p = placement_.group(kind);
  CommGroup g;
  g.ranks = p.ranks;
  g.nodes = p.nodes;
  g.ranks_per_node = p.ranks_per_node;
  g.network_share = network_share_;
  return g;
}

CommCost CommCoster::over(Collective kind, Bytes buffer, const CommGroup& g) const {
  if (g.ranks <= 1) return {Time(), Provenance::measured, {}, {}, {}};
  const CollectiveTime t = collective_time(machine_.comm, kind, buffer, g);
  const double n = g.ranks;
  const double factor = kind == Collective::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
  CommCost cost{scale(t.time, 1.0 / machine_.software.comm_efficiency), t.provenance, {}, {}, {}};
  (g.nodes > 1 ? cost.network : cost.nvlink) = Bytes::ceil(buffer.as_double() * factor);
  CommGroup whole = g;
  whole.network_share = 1.0;
  const CollectiveTime alone = network_share_ < 1 ? collective_time(machine_.comm, kind, buffer, whole) : t;
  cost.traffic.kind = buffer > Bytes(0) ? TrafficKind::collective : TrafficKind::none;
  cost.traffic.collective = kind;
  cost.traffic.algorithm = alone.algorithm;
  cost.traffic.bytes = buffer.as_double();
  cost.traffic.latency = alone.latency;
  cost.traffic.alone = scale(alone.time, 1.0 / machine_.software.comm_efficiency);
  return cost;
}

CommCost CommCoster::collective(Collective kind, Bytes buffer, GroupKind group_kind) const {
  CommCost cost = over(kind, buffer, group(group_kind));
  cost.traffic.group = group_kind;
  return cost;
}

CommCost CommCoster::subgroup(Collective kind, Bytes buffer, GroupKind group_kind, int ranks, bool inner) const {
  CommGroup g = group(group_kind);
  const int per_node = inner ? g.ranks_per_node : std::max(1, g.ranks_per_node * ranks / std::max(1, g.ranks));
  g.ranks = ranks;
  g.ranks_per_node = std::min(ranks, per_node);
  g.nodes = (ranks + g.ranks_per_node - 1) / g.ranks_per_node;
  CommCost cost = over(kind, buffer, g);
  cost.traffic.group = group_kind;
  cost.traffic.subgroup = ranks;
  cost.traffic.inner = inner;
  return cost;
}

double CommCoster::distinct_parts(std::int64_t experts, std::int64_t topk, int parts) {
  // C(E - E/n, k) / C(E, k) as a product of k ratios.
  const double own = static_cast<double>(experts) / parts;
  double none = 1.0;
  for (std::int64_t i = 0; i < topk; ++i) {
    const double left = static_cast<double>(experts - i);
    none *= std::max(0.0, left - own) / left;
  }
  return parts * (1.0 - none);
}

// A token may only use the experts of some groups. Groups are chosen by their best scores, so that practically every
// chosen one is used (3.97 of 4 with 256 experts in 8 groups and top-8, 20,000 draws of equal scores); finer parts are
// hit as often as by free routing among the visible experts.
double CommCoster::distinct_nodes(const CommOp& op, int nodes) {
  if (op.groups_chosen >= op.groups) return distinct_parts(op.experts, op.topk, nodes);
  const double visible = static_cast<double>(op.groups_chosen) / static_cast<double>(op.groups);
  const auto parts = static_cast<int>(std::ceil(nodes * visible));
  const auto experts = static_cast<std::int64_t>(static_cast<double>(op.experts) * visible);
  const double used = static_cast<double>(std::min<std::int64_t>({op.groups_chosen, op.topk, parts}));
  return std::min(distinct_parts(op.experts, op.topk, nodes), std::max(used, distinct_parts(experts, op.topk, parts)));
}

CommCost CommCoster::deduplicated_exchange(const CommOp& op, const CommGroup& g) const {
  const double rows = static_cast<double>(op.tokens), row = static_cast<double>(op.row_bytes);
  const double ranks_hit = distinct_parts(op.experts, op.topk, g.ranks);
  const double nodes_hit = distinct_nodes(op, g.nodes);
  const double own_node = nodes_hit / g.nodes, own_rank = ranks_hit / g.ranks;
  // Copy-free rows go straight to each rank, over the network to every one on another node.
  const double far_ranks = ranks_hit * (g.nodes - 1) / g.nodes;
  const double by_network = g.nodes == 1 ? 0.0 : dispatcher_ == "copy_free" ? far_ranks : nodes_hit - own_node;
  const double network = rows * by_network * row;
  const double nvlink = rows * std::max(0.0, ranks_hit - own_rank - by_network) * row;
  // Fixed part: DeepEP on H100, 26 us dispatch and 48 us combine (hardware notes 3.5).
  const Time fixed = Time::us(op.kind == CommKind::dispatch ? 26 : 48);
  const auto at_share = [&](double share) {
    const double nic = machine_.comm.scale_out.nic_payload.value() * share;
    const double seconds = std::max(network / nic, nvlink / machine_.comm.p2p_rate.value());
    return fixed + Time::from_seconds_ceil(seconds / machine_.software.ep_efficiency);
  };
  CommCost cost{at_share(network_share_), Provenance::fitted, Bytes::ceil(network), Bytes::ceil(nvlink), {}};
  cost.traffic.kind = TrafficKind::two_hop;
  cost.traffic.group = GroupKind::ep;
  cost.traffic.bytes = network;
  cost.traffic.nvlink = nvlink;
  cost.traffic.latency = fixed;
  cost.traffic.alone = at_share(1.0);
  return cost;
}

// Balanced exchange of the dispatcher, scaled by what routing does to the slowest rank; planning (once, backward uses
// the plan again) and the push of replicated weights (in both directions, one pool serves all layers) come before the
// rows move (k3-facts 3.6: the largest sender is on the critical path). On links, bytes are those of the mean rank,
// over the time that the slowest one takes.
CommCost CommCoster::expert_exchange(const CommOp& op) const {
  CommCost cost = balanced_exchange(op);
  if (!moe_.present) return cost;
  const bool out = op.kind == CommKind::dispatch;
  const double ratio = out ? moe_.dispatch_ratio : moe_.combine_ratio;
  const Time plan = out && !op.saved_plan ? moe_.plan : Time(), push = out ? moe_.replicate : Time();
  cost.time = scale(cost.time, ratio) + plan + push;
  const RoutedTraffic& t = moe_.traffic;
  const double network = out ? t.dispatch_network : t.combine_network;
  const double nvlink = out ? t.dispatch_nvlink : t.combine_nvlink;
  cost.network = Bytes::ceil(cost.network.as_double() * network + (out ? t.replica_network : 0.0));
  cost.nvlink = Bytes::ceil(cost.nvlink.as_double() * nvlink + (out ? t.replica_nvlink : 0.0));
  const bool rows_in_pairs = cost.traffic.kind == TrafficKind::two_hop;
  cost.traffic.bytes *= rows_in_pairs || group(GroupKind::ep).nodes > 1 ? network : nvlink;
  cost.traffic.nvlink *= nvlink;
  cost.traffic.alone = scale(cost.traffic.alone, ratio) + plan;
  cost.traffic.latency += plan;
  if (push > Time()) cost.push = weight_push(push);
  return cost;
}

// Its links are those of a two-hop exchange: owners and receivers are spread over the group.
Traffic CommCoster::weight_push(Time alone) const {
  Traffic t;
  t.kind = TrafficKind::two_hop;
  t.group = GroupKind::ep;
  t.bytes = moe_.traffic.replica_network;
  t.nvlink = moe_.traffic.replica_nvlink;
  t.alone = alone;
  return t;
}

CommCost CommCoster::balanced_exchange(const CommOp& op) const {
  const CommGroup g = group(GroupKind::ep);
  if (g.ranks <= 1) return {Time(), Provenance::measured, {}, {}, {}};
  if (dispatcher_ == "allgather") {
    const bool out = op.kind == CommKind::dispatch;
    const Bytes all(op.tokens * op.row_bytes * g.ranks);
    return collective(out ? Collective::all_gather : Collective::reduce_scatter, all, GroupKind::ep);
  }
  if (dispatcher_ == "alltoall") {
    CommCost cost = collective(Collective::all_to_all, op.bytes, GroupKind::ep);
    const double slower = machine_.software.comm_efficiency / machine_.software.ep_efficiency;
    cost.time = scale(cost.time, slower);
    cost.traffic.alone = scale(cost.traffic.alone, slower);
    return cost;
  }
  return deduplicated_exchange(op, g);
}

CommCost CommCoster::time(const CommOp& op) const {
  switch (op.kind) {
    case CommKind::all_reduce:
      return collective(Collective::all_reduce, op.bytes, op.group);
    case CommKind::all_gather:
      return collective(Collective::all_gather, op.bytes, op.group);
    case CommKind::reduce_scatter:
      return collective(Collective::reduce_scatter, op.bytes, op.group);
    case CommKind::all_to_all:
      return collective(Collective::all_to_all, op.bytes, op.group);
    case CommKind::ring_exchange:
      return collective(Collective::all_gather, op.bytes, op.group);
    case CommKind::dispatch:
    case CommKind::combine:
      return expert_exchange(op);
  }
  CS_CHECK(false, "unknown communication kind {}", static_cast<int>(op.kind));
}

CommCost CommCoster::pipeline_hop(Bytes bytes) const {
  CommGroup g;
  g.ranks = 2;
  const bool inside = placement_.pp_hop_within_node();
  g.nodes = inside ? 1 : 2;
  g.ranks_per_node = inside ? 2 : 1;
  g.network_share = network_share_;
  const CollectiveTime t = collective_time(machine_.comm, Collective::send_recv, bytes, g);
  CommCost cost{t.time, t.provenance, {}, {}, {}};
  (inside ? cost.nvlink : cost.network) = bytes;
  g.network_share = 1.0;
  const CollectiveTime alone = collective_time(machine_.comm, Collective::send_recv, bytes, g);
  cost.traffic.kind = bytes > Bytes(0) ? TrafficKind::hop : TrafficKind::none;
  cost.traffic.bytes = bytes.as_double();
  cost.traffic.latency = alone.latency;
  cost.traffic.alone = alone.time;
  return cost;
}

}  // namespace k3sim
