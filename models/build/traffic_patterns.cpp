// See traffic_patterns.h. Source: engine-design sections 5 to 7.
#include "models/build/traffic_patterns.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

namespace {

// Groups whose nodes hold different numbers of members are laid out as one member per node: rings and messages then
// follow the order of ranks, over NVLink where neighbours share a server.
PlacedGroup placed(const Topology& topology, const std::vector<int>& gpus) {
  const int per_server = topology.spec.node.gpus;
  std::vector<int> sizes;
  int last = -1;
  for (const int gpu : gpus) {
    if (gpu / per_server != last) sizes.push_back(0);
    last = gpu / per_server;
    ++sizes.back();
  }
  const bool even = std::all_of(sizes.begin(), sizes.end(), [&](int s) { return s == sizes.front(); });
  PlacedGroup g;
  g.gpus = gpus;
  g.per_node = even ? sizes.front() : 1;
  return g;
}

constexpr Bytes kUnit(std::int64_t{1} << 40);  // of two-hop exchanges, which are told whole bytes

// Collectives over the pipeline (vocabulary shares) are one task on each of its ranks: each carries its part of the
// loads.
bool over_pipeline(const Traffic& t) {
  return t.kind == TrafficKind::collective && t.group == GroupKind::pp;
}

bool runs_in_groups(const Traffic& t) {
  return (t.kind == TrafficKind::collective || t.kind == TrafficKind::two_hop) && !over_pipeline(t);
}

}  // namespace

TrafficPatterns::TrafficPatterns(const StepPlan& plan, const Topology& topology, const std::vector<GroupKind>& unfold)
    : plan_(plan),
      topology_(topology),
      router_(topology),
      loads_(topology.links.size()),
      replicas_(plan.placement->replicas()) {
  const Placement& p = *plan.placement;
  const int cp = plan.scenario.parallel.cp;
  const auto folded = [&](GroupKind k) { return std::find(unfold.begin(), unfold.end(), k) == unfold.end(); };
  const std::vector<int> peers = folded(GroupKind::ep) ? std::vector<int>() : p.members(GroupKind::ep, 0);
  for (int r = 0; r < replicas_; ++r) {
    if (!peers.empty() && folded(GroupKind::dp)) {  // expert-parallel peers stand for the same position of other groups
      const std::vector<int> group = p.members(GroupKind::ep, r);
      representative_.push_back(
          peers[static_cast<std::size_t>(std::find(group.begin(), group.end(), r) - group.begin())]);
      continue;
    }
    int like = r;
    if (folded(GroupKind::tp)) like = p.members(GroupKind::tp, like).front();
    if (folded(GroupKind::cp) && cp > 1) like = p.members(GroupKind::cp, like).front();
    if (folded(GroupKind::dp)) {
      const std::vector<int> all = p.members(GroupKind::dp, like);  // spans dp x cp, cp fastest
      const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), like) - all.begin());
      like = all[at % static_cast<std::size_t>(cp)];
    }
    representative_.push_back(like);
  }
}

int TrafficPatterns::representative(int replica) const {
  return representative_[static_cast<std::size_t>(replica)];
}

// The ranks that take part with `replica`, in group order.
std::vector<int> TrafficPatterns::members(const Traffic& t, int replica) const {
  const std::vector<int> all = plan_.placement->members(t.group, replica);
  const auto n = static_cast<int>(all.size());
  if (t.subgroup <= 0 || t.subgroup >= n) return all;
  const int at = static_cast<int>(std::find(all.begin(), all.end(), replica) - all.begin());
  const int stride = t.inner ? 1 : n / t.subgroup;
  const int first = t.inner ? at / t.subgroup * t.subgroup : at % stride;
  std::vector<int> out;
  for (int i = 0; i < t.subgroup && first + i * stride < n; ++i)
    out.push_back(all[static_cast<std::size_t>(first + i * stride)]);
  return out;
}

std::vector<TrafficPatterns::Term> TrafficPatterns::terms(const Traffic& t, int rank, int replica) {
  std::vector<Term> out;
  if (t.kind == TrafficKind::none) return out;
  if (t.bytes > 0) out.push_back({pattern(t, false, rank, replica), t.bytes});
  if (t.kind == TrafficKind::two_hop && t.nvlink > 0) out.push_back({pattern(t, true, rank, replica), t.nvlink});
  return out;
}

std::uint32_t TrafficPatterns::pattern(const Traffic& t, bool nvlink_part, int rank, int replica) {
  Key key{t, nvlink_part, rank, replica == kAllReplicas ? kAllReplicas : representative(replica)};
  key.shape.bytes = key.shape.nvlink = 0;
  key.shape.latency = key.shape.alone = Time();
  if (runs_in_groups(t) && replica != kAllReplicas) key.leader = members(t, key.leader).front();
  const auto [it, fresh] = index_.try_emplace(key, static_cast<std::uint32_t>(patterns_.size()));
  if (fresh) patterns_.push_back(make(key));
  return it->second;
}

// Every rank (or group) whose representative is the key's adds its loads.
Pattern TrafficPatterns::make(const Key& key) {
  const bool all = key.leader == kAllReplicas;
  for (int r = 0; r < replicas_; ++r) {
    if (!runs_in_groups(key.shape)) {
      if (all || representative(r) == key.leader) add_rank(key, r, loads_);
      continue;
    }
    const std::vector<int> group = members(key.shape, r);
    if (group.front() == r && (all || members(key.shape, representative(r)).front() == key.leader))
      add_group(key, group, loads_);
  }
  const double unit = key.shape.kind == TrafficKind::two_hop ? kUnit.as_double() : 1.0;
  Pattern out;
  for (const auto& [link, load] : loads_.drain()) out.push_back({link, load / unit});
  return out;
}

void TrafficPatterns::add_group(const Key& key, const std::vector<int>& group, LinkLoads& loads) const {
  if (group.size() < 2) return;
  std::vector<int> gpus;
  gpus.reserve(group.size());
  for (const int r : group) gpus.push_back(gpu(key.rank, r));
  const PlacedGroup g = placed(topology_, gpus);
  const FlowContext c{topology_, router_, g, loads};
  if (key.shape.kind == TrafficKind::two_hop)
    return add_two_hop_loads(c, {key.nvlink_part ? Bytes(0) : kUnit, key.nvlink_part ? kUnit : Bytes(0), {}, {}});
  add_algorithm_loads(c, key.shape.algorithm, key.shape.collective, 1.0);
}

void TrafficPatterns::add_rank(const Key& key, int replica, LinkLoads& loads) const {
  const int own = gpu(key.rank, replica);
  switch (key.shape.kind) {
    case TrafficKind::to_host:
      return loads.add(router_.gpu_to_host(own), 1.0);
    case TrafficKind::from_host:
      return loads.add(router_.host_to_gpu(own), 1.0);
    case TrafficKind::collective: {
      std::vector<int> gpus;
      for (int p = 0; p < plan_.placement->pp(); ++p) gpus.push_back(gpu(p, replica));
      const PlacedGroup g = placed(topology_, gpus);
      return add_algorithm_loads({topology_, router_, g, loads}, key.shape.algorithm, key.shape.collective,
                                 1.0 / plan_.placement->pp());
    }
    default: {
      const int other = gpu(key.shape.peer, replica);
      if (own == other) return;
      loads.add(key.shape.inner ? router_.gpu_to_gpu(own, other) : router_.gpu_to_gpu(other, own), 1.0);
    }
  }
}

}  // namespace k3sim
