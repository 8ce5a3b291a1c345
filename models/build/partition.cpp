// See partition.h. Source: the linear partition problem, then hill climbing on the whole judgement.
#include "models/build/partition.h"

#include <algorithm>

#include "models/build/attnres_flow.h"
#include "models/memory/states.h"

namespace k3sim {

namespace {

double seconds(const TimedLayer* l) {
  return l == nullptr ? 0.0 : (l->forward.summary.elapsed + l->backward.summary.elapsed).seconds();
}

class Judge {
 public:
  Judge(const StepPlan& plan, const Machine& machine) : plan_(plan) {
    const LayerSet& set = *plan.layers;
    const ModelSpec& m = plan.scenario.model;
    for (std::size_t i = 0; i < set.layers(); ++i) layers_.push_back(set.decoder(i, set.policy().any()));
    first_ = seconds(set.embedding());
    last_ = seconds(set.head()) + seconds(set.mtp()) * static_cast<double>(m.mtp_layers);
    const std::int64_t tokens = plan.split.sequence_parallel ? plan.split.tokens / plan.split.tp : plan.split.tokens;
    row_ = Bytes(tokens * m.hidden * 2);
    dense_shards_ = plan.placement->group(GroupKind::dp).ranks;
    expert_shards_ = plan.placement->group(GroupKind::expert_dp).ranks;
    capacity_ = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory).as_double();
  }

  std::vector<int> start() const {
    std::vector<double> costs;
    for (const TimedLayer* l : layers_) costs.push_back(seconds(l));
    const std::vector<int> cut = balanced_cut(costs, plan_.schedule.stages_per_chain(), first_, last_);
    std::vector<int> out;
    for (std::size_t c = 0; c + 1 < cut.size(); ++c) out.push_back(cut[c + 1] - cut[c]);
    return out;
  }

  PartitionCost judge(const std::vector<int>& stage_layers) const {
    const auto chunks = stage_layers.size();
    const std::int64_t block = plan_.scenario.model.attnres_block;
    std::vector<double> ranks(static_cast<std::size_t>(plan_.schedule.ranks));
    std::vector<std::int64_t> rows_after;
    std::vector<double> kept(ranks.size());
    std::vector<StateShape> states(ranks.size());
    PartitionCost cost;
    std::size_t layer = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto rank = static_cast<std::size_t>(plan_.schedule.rank_of_stage[c]);
      double time = (c == 0 ? first_ : 0.0) + (c + 1 == chunks ? last_ : 0.0);
      ParameterCount parameters = edge_parameters(c, chunks);
      for (int i = 0; i < stage_layers[c]; ++i, ++layer) {
        time += seconds(layers_[layer]);
        // Policy auto will fit the activations itself.
        if (plan_.scenario.activation.policy != "auto")
          kept[rank] += layers_[layer]->saved.as_double() * in_flight(rank);
        parameters.dense += plan_.layers->parameters(layer).dense;
        parameters.experts += plan_.layers->parameters(layer).experts;
      }
      add(states[rank], parameters);
      ranks[rank] += time;
      cost.slowest_chunk = std::max(cost.slowest_chunk, time);
      rows_after.push_back(block > 0 ? attnres_bank(static_cast<std::int64_t>(layer), block) : 0);
    }
    add_boundaries(rows_after, ranks);
    cost.slowest_rank = *std::max_element(ranks.begin(), ranks.end());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double used = state_bytes(states[r], plan_.scenario.optimizer).gpu().as_double() + kept[r];
      cost.missing_gib = std::max(cost.missing_gib, (used - 0.75 * capacity_) / (1 << 30));
    }
    cost.missing_gib = std::max(0.0, cost.missing_gib);
    const double per_rank = static_cast<double>(chunks) / static_cast<double>(ranks.size());
    cost.value = cost.slowest_rank + cost.slowest_chunk * (per_rank - 1) / 2 + cost.missing_gib;
    return cost;
  }

 private:
  ParameterCount edge_parameters(std::size_t c, std::size_t chunks) const {
    ParameterCount p;
    if (c == 0) p = plan_.layers->embedding_parameters();
    if (c + 1 != chunks) return p;
    p.dense += plan_.layers->head_parameters().dense + plan_.layers->mtp_parameters().dense;
    p.experts += plan_.layers->mtp_parameters().experts;
    return p;
  }

  // Warm-up of 1F1B: earlier ranks hold more micro-batches.
  double in_flight(std::size_t rank) const {
    const double ranks = plan_.schedule.ranks, chunks = plan_.schedule.stages_per_chain() / ranks;
    return std::min(static_cast<double>(plan_.microbatches),
                    ranks + (chunks > 1 ? (ranks - 1) / chunks : 0.0) - static_cast<double>(rank));
  }

  void add(StateShape& s, const ParameterCount& p) const {
    s.dense_shards = dense_shards_;
    s.expert_shards = expert_shards_;
    s.parameters.dense += p.dense;
    s.parameters.experts += p.experts;
    if (p.dense + p.experts > s.largest_chunk.dense + s.largest_chunk.experts) s.largest_chunk = p;
  }

  // Sends of both directions take their NIC; only what lies between ranks counts.
  void add_boundaries(const std::vector<std::int64_t>& rows_after, std::vector<double>& ranks) const {
    const std::vector<int>& of = plan_.schedule.rank_of_stage;
    const std::vector<int> chain(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(rows_after.size()));
    const auto mode = plan_.scenario.attnres.pipeline == "naive" ? AttnresPipeline::naive : AttnresPipeline::cached;
    const AttnresRows rows = attnres_rows(rows_after, chain, mode);
    for (std::size_t c = 0; c + 1 < rows_after.size(); ++c) {
      if (chain[c] == chain[c + 1]) continue;
      const double hop = plan_.comm->pipeline_hop(row_ * (1 + rows.sent[c])).time.seconds();
      const double exposed =
          plan_.scenario.overlap.p2p ? 0.1 : 1.0;  // overlapped sends still take copies and bandwidth
      ranks[static_cast<std::size_t>(chain[c])] += exposed * hop;
      ranks[static_cast<std::size_t>(chain[c + 1])] += exposed * hop;
    }
  }

  const StepPlan& plan_;
  std::vector<const TimedLayer*> layers_;
  double first_ = 0, last_ = 0, capacity_ = 0;
  Bytes row_;
  int dense_shards_ = 1, expert_shards_ = 1;
};

// Moves one layer from chunk a to chunk b; the layers between shift along.
std::vector<int> moved(std::vector<int> cut, std::size_t from, std::size_t to) {
  --cut[from];
  ++cut[to];
  return cut;
}

}  // namespace

PartitionCost partition_cost(const StepPlan& plan, const Machine& machine, const std::vector<int>& stage_layers) {
  return Judge(plan, machine).judge(stage_layers);
}

std::vector<int> balanced_stage_layers(const StepPlan& plan, const Machine& machine) {
  const Judge judge(plan, machine);
  std::vector<int> best = judge.start();
  double value = judge.judge(best).value;
  for (bool better = true; better;) {
    better = false;
    std::vector<int> next = best;
    for (std::size_t a = 0; a < best.size(); ++a)
      for (std::size_t b = 0; b < best.size(); ++b) {
        if (a == b || best[a] <= 1) continue;
        const std::vector<int> candidate = moved(best, a, b);
        const double v = judge.judge(candidate).value;
        if (v < value - 1e-12) value = v, next = candidate, better = true;
      }
    best = next;
  }
  return best;
}

}  // namespace k3sim
