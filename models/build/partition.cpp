// See partition.h. Source: the linear partition problem, then hill climbing on the whole judgement.
#include "models/build/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/build/attnres_flow.h"
#include "models/build/breakdown.h"
#include "models/build/pair_actions.h"
#include "models/build/stage_memory.h"
#include "models/build/stage_policies.h"
#include "models/build/step_graph.h"
#include "models/memory/states.h"
#include "sim/base/error.h"
#include "sim/graph/longest_path.h"

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
    if (set.mtp() != nullptr) mtp_layers_ = m.mtp_layers;
    first_ = seconds(set.embedding());
    last_ = seconds(set.head()) + seconds(set.mtp()) * static_cast<double>(mtp_layers_);
    const std::int64_t tokens = plan.split.sequence_parallel ? plan.split.tokens / plan.split.tp : plan.split.tokens;
    row_ = Bytes(tokens * m.hidden * 2);
    dense_shards_ = plan.placement->group(GroupKind::dp).ranks;
    expert_shards_ = plan.placement->group(GroupKind::expert_dp).ranks;
    for (int rank = 0; rank < plan.schedule.ranks; ++rank) alive_.push_back(fullest_moments(plan.schedule, rank));
    const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
    const double inside = (capacity.as_double() - outside_allocator(plan, machine).as_double() -
                           machine.software.workspace_memory.as_double()) /
                          (1 + machine.software.fragmentation);
    // Policy auto will fit the activations itself; a quarter is left for what it cannot send away.
    host_room_ = host_share(plan, machine).as_double();
    room_ = plan.scenario.activation.policy == "auto" ? 0.75 * inside : inside;
  }

  std::vector<int> start() const {
    std::vector<double> costs;
    for (const TimedLayer* l : layers_) costs.push_back(seconds(l));
    return sizes(balanced_cut(costs, plan_.schedule.stages_per_chain(), first_, last_));
  }

  // Whole AttnRes blocks per chunk.
  std::vector<int> blocks() const {
    const std::int64_t block = plan_.scenario.model.attnres_block;
    const int chunks = plan_.schedule.stages_per_chain();
    const auto all = block > 0 ? (static_cast<std::int64_t>(layers_.size()) + block - 1) / block : 0;
    if (all < chunks)
      throw ConfigError(fmt::format("blocks: {} blocks of layers cannot fill {} model chunks", all, chunks),
                        "parallel.partition");
    std::vector<double> costs(static_cast<std::size_t>(all));
    for (std::size_t i = 0; i < layers_.size(); ++i) costs[i / static_cast<std::size_t>(block)] += seconds(layers_[i]);
    std::vector<int> cut = balanced_cut(costs, chunks, first_, last_);
    for (int& c : cut) c = std::min(static_cast<int>(layers_.size()), c * static_cast<int>(block));
    return sizes(cut);
  }

  PartitionCost judge(const std::vector<int>& stage_layers) const {
    const auto chunks = stage_layers.size();
    const std::int64_t block = plan_.scenario.model.attnres_block;
    Ranks ranks(static_cast<std::size_t>(plan_.schedule.ranks));
    Held held{std::vector<double>(chunks), std::vector<double>(chunks)};
    std::vector<double> rounds((chunks + ranks.size() - 1) / ranks.size());
    std::vector<std::int64_t> rows_after;
    PartitionCost cost;
    std::size_t layer = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      Rank& rank = ranks[static_cast<std::size_t>(plan_.schedule.rank_of_stage[c])];
      double time = (c == 0 ? first_ : 0.0) + (c + 1 == chunks ? last_ : 0.0);
      ParameterCount parameters = edge_parameters(c, chunks);
      hold_edges(rank, held, c);
      for (int i = 0; i < stage_layers[c]; ++i, ++layer) {
        time += seconds(layers_[layer]);
        hold(rank, held, *layers_[layer], c);
        parameters.dense += plan_.layers->parameters(layer).dense;
        parameters.experts += plan_.layers->parameters(layer).experts;
      }
      add(rank.states, parameters);
      rank.seconds += time;
      cost.slowest_chunk = std::max(cost.slowest_chunk, time);
      rounds[c / ranks.size()] = std::max(rounds[c / ranks.size()], time);
      rows_after.push_back(block > 0 ? attnres_bank(static_cast<std::int64_t>(layer), block) : 0);
    }
    add_boundaries(rows_after, ranks, held);
    for (double t : rounds) cost.rounds += t;
    finish(cost, ranks, held);
    return cost;
  }

 private:
  struct Rank {
    double seconds = 0, transient = 0;
    StateShape states;
  };
  using Ranks = std::vector<Rank>;
  struct Held {  // bytes of one micro-batch between forward and backward, by chunk
    std::vector<double> gpu, host;
  };
  // Micro-batches alive of each chunk of a rank.
  using Moment = std::vector<std::pair<std::size_t, int>>;

  // All moments of a schedule at which no chunk could hold more without another holding less.
  static std::vector<Moment> fullest_moments(const Schedule& s, int rank) {
    std::map<std::size_t, int> alive;
    std::vector<Moment> out;
    const auto covers = [](const Moment& a, const Moment& b) {
      for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].second < b[i].second) return false;
      return true;
    };
    for (int stage : s.stages_of_rank(rank)) alive[static_cast<std::size_t>(s.model_stage(stage))] = 0;
    for (const Action& a : s.actions[static_cast<std::size_t>(rank)])
      for_each_part(a, [&](const Action& part) {
        if (part.stage < 0) return;
        int& n = alive[static_cast<std::size_t>(s.model_stage(part.stage))];
        if (yields_weight_grad(part.kind)) --n;
        if (part.kind != ActionKind::kForward) return;
        ++n;
        const Moment now(alive.begin(), alive.end());
        if (std::any_of(out.begin(), out.end(), [&](const Moment& m) { return covers(m, now); })) return;
        std::erase_if(out, [&](const Moment& m) { return covers(now, m); });
        out.push_back(now);
      });
    return out;
  }

  double peak_of(std::size_t rank, const std::vector<double>& bytes) const {
    double most = 0;
    for (const Moment& moment : alive_[rank]) {
      double sum = 0;
      for (const auto& [chunk, n] : moment) sum += n * bytes[chunk];
      most = std::max(most, sum);
    }
    return most;
  }

  static std::vector<int> sizes(const std::vector<int>& cut) {
    std::vector<int> out;
    for (std::size_t c = 0; c + 1 < cut.size(); ++c) out.push_back(cut[c + 1] - cut[c]);
    return out;
  }

  void finish(PartitionCost& cost, const Ranks& ranks, const Held& held) const {
    double squares = 0, missing_in_all = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Rank& r = ranks[i];
      cost.slowest_rank = std::max(cost.slowest_rank, r.seconds);
      squares += r.seconds * r.seconds;
      const StateBytes states = state_bytes(r.states, plan_.scenario.optimizer);
      const double used = states.gpu().as_double() + peak_of(i, held.gpu) + r.transient;
      const double on_host = peak_of(i, held.host) + (states.host_optimizer + states.host_gradients).as_double();
      const double missing = std::max(0.0, (used - room_) / (1 << 30)) +
                             (host_room_ > 0 ? std::max(0.0, (on_host - host_room_) / (1 << 30)) : 0.0);
      cost.missing_gib = std::max(cost.missing_gib, missing);
      missing_in_all += missing;
    }
    // Sums over ranks lead the climb where several are equally slow or equally short.
    cost.value =
        (0.5 * (cost.slowest_rank + cost.rounds) + 0.05 * std::sqrt(squares / static_cast<double>(ranks.size()))) *
        (1 + missing_in_all);
  }

  // Tensors of one layer on the rank of chunk c; policy auto keeps what fits.
  void hold(Rank& rank, Held& held, const TimedLayer& l, std::size_t c) const {
    for (const PassEvents* pass : {&l.memory->forward, &l.memory->backward, &l.memory->input_grad})
      rank.transient = std::max(rank.transient, pass->peak.as_double());
    if (plan_.scenario.activation.policy == "auto") return;
    held.gpu[c] += l.saved.as_double();
    held.host[c] += l.offloaded.as_double();
  }
  void hold_edges(Rank& rank, Held& held, std::size_t c) const {
    if (c == 0) hold(rank, held, *plan_.layers->embedding(), c);
    if (c + 1 != held.gpu.size()) return;
    hold(rank, held, *plan_.layers->head(), c);
    for (std::int64_t k = 0; k < mtp_layers_; ++k) hold(rank, held, *plan_.layers->mtp(), c);
  }

  ParameterCount edge_parameters(std::size_t c, std::size_t chunks) const {
    ParameterCount p;
    if (c == 0) p = plan_.layers->embedding_parameters();
    if (c + 1 != chunks) return p;
    p.dense += plan_.layers->head_parameters().dense + mtp_layers_ * plan_.layers->mtp_parameters().dense;
    p.experts += mtp_layers_ * plan_.layers->mtp_parameters().experts;
    return p;
  }

  void add(StateShape& s, const ParameterCount& p) const {
    s.dense_shards = dense_shards_;
    s.expert_shards = expert_shards_;
    s.parameters.dense += p.dense;
    s.parameters.experts += p.experts;
    if (p.dense + p.experts > s.largest_chunk.dense + s.largest_chunk.experts) s.largest_chunk = p;
  }

  // Sends of both directions take their NIC; only what lies between ranks counts. Received rows wait for backward.
  void add_boundaries(const std::vector<std::int64_t>& rows_after, Ranks& ranks, Held& held) const {
    const std::vector<int>& of = plan_.schedule.rank_of_stage;
    const std::vector<int> chain(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(rows_after.size()));
    const auto mode = plan_.scenario.attnres.pipeline == "naive" ? AttnresPipeline::naive : AttnresPipeline::cached;
    const AttnresRows rows = attnres_rows(rows_after, chain, mode);
    for (std::size_t c = 0; c + 1 < rows_after.size(); ++c) {
      held.gpu[c + 1] += row_.as_double() * static_cast<double>(rows.received[c + 1]);
      if (chain[c] == chain[c + 1]) continue;
      const double hop = plan_.comm->pipeline_hop(row_ * (1 + rows.sent[c])).time.seconds();
      const double exposed =
          plan_.scenario.overlap.p2p ? 0.1 : 1.0;  // overlapped sends still take copies and bandwidth
      ranks[static_cast<std::size_t>(chain[c])].seconds += exposed * hop;
      ranks[static_cast<std::size_t>(chain[c + 1])].seconds += exposed * hop;
    }
  }

  const StepPlan& plan_;
  std::vector<const TimedLayer*> layers_;
  std::vector<std::vector<Moment>> alive_;  // by rank
  double first_ = 0, last_ = 0, room_ = 0, host_room_ = 0;
  std::int64_t mtp_layers_ = 0;
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

namespace {

std::vector<int> climb(const Judge& judge, std::vector<int> best) {
  double value = judge.judge(best).value;
  for (bool better = true; better;) {
    better = false;
    std::vector<int> next = best;
    for (std::size_t a = 0; a < best.size(); ++a)
      for (std::size_t b = 0; b < best.size(); ++b) {
        // Only the ends may be left with embedding or head alone.
        const int least = a == 0 || a + 1 == best.size() ? 0 : 1;
        if (a == b || best[a] <= least) continue;
        const std::vector<int> candidate = moved(best, a, b);
        const double v = judge.judge(candidate).value;
        if (v < value - 1e-12) value = v, next = candidate, better = true;
      }
    best = next;
  }
  return best;
}

// The step with this cut, every communication alone; policy auto, which fits activations later, keeps them all here.
Time simulated(const StepPlan& plan, const Machine& machine, const std::vector<int>& cut) {
  Scenario s = plan.scenario;
  s.parallel.stage_layers = cut;
  s.vision.placement = "none";
  StepReuse reuse;
  reuse.schedule = std::make_shared<const Schedule>(plan.schedule);
  if (s.activation.policy == "auto")
    s.activation.policy = "none";
  else
    reuse.layers = plan.layers;
  const StepPlan trial = make_step_plan(s, machine, reuse);
  StepGraphOptions options;
  if (has_pairs(trial.schedule)) options.detail = StepGraphOptions::Detail::kernel;
  const StepGraph graph = build_step_graph(trial, machine, options);
  return step_period(graph, longest_path(graph.built.graph, graph.built.durations));
}

}  // namespace

std::vector<int> balanced_stage_layers(const StepPlan& plan, const Machine& machine) {
  const Judge judge(plan, machine);
  if (plan.scenario.parallel.partition == "blocks") return judge.blocks();
  const std::vector<int> start = judge.start(), best = climb(judge, start);
  // The judgement sees chunks and ranks, not the whole pipeline: the step itself decides, unless only one cut fits.
  if (best == start || judge.judge(best).missing_gib < judge.judge(start).missing_gib) return best;
  return simulated(plan, machine, best) < simulated(plan, machine, start) ? best : start;
}

}  // namespace k3sim
