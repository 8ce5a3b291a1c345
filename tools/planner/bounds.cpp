#include "tools/planner/bounds.h"

#include <algorithm>
#include <limits>

#include "models/memory/states.h"

namespace k3sim {

namespace {

struct RankLoad {
  double forward = 0, input = 0, weight = 0, backward = 0, busy = 0, network = 0, copies = 0;
  double head = std::numeric_limits<double>::infinity(), drain = std::numeric_limits<double>::infinity();
};

std::vector<RankLoad> rank_loads(const StageMap& map, const std::vector<ChunkCost>& chunks) {
  std::vector<RankLoad> loads(static_cast<std::size_t>(map.ranks));
  const std::size_t per_chain = chunks.size();
  double head = 0, drain = 0;
  for (std::size_t stage = 0; stage < map.rank_of_stage.size(); ++stage) {
    const ChunkCost& c = chunks[stage % per_chain];
    if (stage % per_chain == 0) head = drain = 0;
    RankLoad& r = loads[static_cast<std::size_t>(map.rank_of_stage[stage])];
    r.head = std::min(r.head, head);
    r.drain = std::min(r.drain, drain);
    r.forward += c.forward, r.input += c.input, r.weight += c.weight, r.backward += c.backward;
    r.busy += c.forward_busy + c.backward_busy;
    r.network += c.network, r.copies += c.copies;
    head += c.forward_out, drain += c.input_out;
  }
  return loads;
}

enum class WarmUp : std::uint8_t { unknown, all, looped };

WarmUp warm_up(const Scenario& s) {
  if (s.activation.policy == "auto" || !s.schedule.file.empty()) return WarmUp::unknown;  // auto may keep nothing
  if (s.schedule.name == "gpipe") return WarmUp::all;
  const bool looped = s.schedule.name == "1f1b" || s.schedule.name == "interleaved" || s.schedule.name == "k3";
  return looped ? WarmUp::looped : WarmUp::unknown;
}

// Chunk-sized forwards that a rank has done before its first backward may end, by chunk.
std::int64_t warmup_forwards(const Scenario& s, WarmUp kind, const Layout& layout, int rank) {
  const std::int64_t p = s.parallel.pp, v = s.parallel.vpp, m = layout.microbatches;
  if (kind == WarmUp::all) return m;
  if (v == 1) return std::min<std::int64_t>(m, p - rank);
  return std::min<std::int64_t>(m * v, 2 * (p - 1 - rank) + (v - 1) * p + 1);
}

double warmup_bytes(const Scenario& s, WarmUp kind, const Layout& layout, const std::vector<ChunkCost>& chunks,
                    int rank) {
  if (kind == WarmUp::unknown) return 0;
  const std::int64_t p = s.parallel.pp, v = s.parallel.vpp, n = warmup_forwards(s, kind, layout, rank);
  if (n == 1) return 0;
  double bytes = 0;
  for (std::int64_t k = 0; k < n; ++k) bytes += chunks[static_cast<std::size_t>(k / p % v * p + rank)].saved;
  return bytes;
}

}  // namespace

StageMap stage_map(const Scenario& s, const Layout& layout) {
  StageMap map;
  map.ranks = s.parallel.pp;
  Scenario small = s;
  std::int64_t m = std::min<std::int64_t>(layout.microbatches, 4 * s.parallel.pp);
  if (m % s.parallel.pp != 0) m = layout.microbatches;
  const Schedule schedule = make_plan_schedule(small, m);
  map.chains = schedule.chains;
  map.rank_of_stage = schedule.rank_of_stage;
  map.sliced = schedule.slices > 1;
  for (const std::vector<Action>& rank : schedule.actions)
    for (const Action& a : rank) {
      map.splits = map.splits || a.kind == ActionKind::kWeightGrad;
      map.interleaves = map.interleaves || a.kind == ActionKind::kOverlap;
    }
  return map;
}

const StageMap& StageMaps::get(const Scenario& s, const Layout& layout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Overlapped pairs depend on whether there are enough micro-batches to pair at all.
  const Key key{number(s.schedule), s.parallel.pp,
                s.parallel.vpp,     s.schedule.split_wgrad,
                s.moe.overlap_ep,   std::min<std::int64_t>(layout.microbatches, std::int64_t{2} * s.parallel.pp)};
  const auto [it, fresh] = maps_.try_emplace(key);
  if (fresh) it->second = stage_map(s, layout);
  return it->second;
}

std::size_t StageMaps::number(const ScheduleConfig& s) {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i].first == s.name && names_[i].second == s.file) return i;
  names_.emplace_back(s.name, s.file);
  return names_.size() - 1;
}

double least_step_seconds(const StageMap& map, const Layout& layout, const std::vector<ChunkCost>& chunks) {
  if (map.sliced) return 0;
  const double m = static_cast<double>(layout.microbatches) / map.chains;
  double least = 0;
  for (const RankLoad& r : rank_loads(map, chunks)) {
    double work = m * (r.forward + r.backward) + r.drain;
    if (map.splits)
      work = std::max(m * (r.forward + r.input) + r.drain, m * (r.forward + std::min(r.backward, r.input + r.weight)));
    if (map.interleaves) work = m * r.busy;
    least = std::max({least, r.head + work, m * r.copies});
    if (!map.splits) least = std::max(least, m * r.network);
  }
  return least * (1.0 - 1e-9);  // sums in another order than the simulation's
}

Bytes least_memory(const Scenario& s, const StageMap& map, const Layout& layout, const std::vector<ChunkCost>& chunks) {
  const OptimizerConfig& o = s.optimizer;
  const auto shards = [&](std::int64_t all) {
    return o.shard_group > 0 ? std::min<std::int64_t>(o.shard_group, all) : all;
  };
  StateShape shape;
  shape.dense_shards = shards(std::int64_t{layout.dp} * s.parallel.cp);
  shape.expert_shards = shards(std::max<std::int64_t>(
      1, std::int64_t{s.parallel.tp} * s.parallel.cp * layout.dp / (std::int64_t{s.parallel.ep} * s.parallel.etp)));
  std::vector<StateShape> ranks(static_cast<std::size_t>(map.ranks), shape);
  for (std::size_t stage = 0; stage < map.rank_of_stage.size(); ++stage) {
    StateShape& r = ranks[static_cast<std::size_t>(map.rank_of_stage[stage])];
    const ChunkCost& c = chunks[stage % chunks.size()];
    r.parameters.dense += c.parameters.dense;
    r.parameters.experts += c.parameters.experts;
  }
  double most = 0;
  const WarmUp kind = warm_up(s);
  for (int rank = 0; rank < map.ranks; ++rank) {
    const StateBytes states = state_bytes(ranks[static_cast<std::size_t>(rank)], o);
    most = std::max(most, states.gpu().as_double() + warmup_bytes(s, kind, layout, chunks, rank));
  }
  return Bytes(static_cast<std::int64_t>(most));
}

}  // namespace k3sim
