#include "models/build/step_plan.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {

std::vector<int> balanced_cut(const std::vector<double>& cost, int chunks, double first_extra, double last_extra) {
  const int n = static_cast<int>(cost.size());
  std::vector<double> prefix(cost.size() + 1, 0.0);
  for (std::size_t i = 0; i < cost.size(); ++i) prefix[i + 1] = prefix[i] + cost[i];
  const auto chunk_cost = [&](int c, int from, int to) {
    return prefix[static_cast<std::size_t>(to)] - prefix[static_cast<std::size_t>(from)] + (c == 0 ? first_extra : 0) +
           (c == chunks - 1 ? last_extra : 0);
  };
  // best[c][i]: least possible maximum over chunks 0..c when they hold the first i layers.
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(static_cast<std::size_t>(chunks), std::vector<double>(cost.size() + 1, inf));
  std::vector<std::vector<int>> from(static_cast<std::size_t>(chunks), std::vector<int>(cost.size() + 1, 0));
  for (int c = 0; c < chunks; ++c)
    for (int i = 0; i <= n; ++i)
      for (int j = c == 0 ? 0 : i; j >= 0; --j) {
        const double before = c == 0 ? 0.0 : best[static_cast<std::size_t>(c - 1)][static_cast<std::size_t>(j)];
        const double value = std::max(before, chunk_cost(c, j, i));
        double& slot = best[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)];
        if (value < slot) slot = value, from[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)] = j;
        if (c == 0) break;
      }
  std::vector<int> cut(static_cast<std::size_t>(chunks) + 1, n);
  for (int c = chunks - 1; c >= 0; --c)
    cut[static_cast<std::size_t>(c)] =
        from[static_cast<std::size_t>(c)][static_cast<std::size_t>(cut[static_cast<std::size_t>(c) + 1])];
  return cut;
}

namespace {

void resolve_degrees(StepPlan& plan) {
  Scenario& s = plan.scenario;
  ParallelConfig& p = s.parallel;
  const int model_parallel = p.tp * p.pp * p.cp;
  if (p.dp == 0) p.dp = s.cluster.gpus() / std::max(1, model_parallel);
  if (p.dp < 1 || model_parallel * p.dp != s.cluster.gpus())
    throw ConfigError(fmt::format("tp {} x pp {} x cp {} x dp {} = {} does not equal the cluster's {} GPUs", p.tp,
                                  p.pp, p.cp, p.dp, model_parallel * p.dp, s.cluster.gpus()),
                      "parallel");
  const BatchConfig& b = s.batch;
  plan.global_sequences = b.global_sequences > 0 ? b.global_sequences : b.global_tokens / b.sequence;
  const std::int64_t per_pass = b.micro_batch * p.dp;
  if (per_pass <= 0 || plan.global_sequences % per_pass != 0)
    throw ConfigError(fmt::format("{} sequences per step are not a multiple of micro_batch {} x dp {} = {}",
                                  plan.global_sequences, b.micro_batch, p.dp, per_pass),
                      "batch");
  plan.microbatches = plan.global_sequences / per_pass;
}

class Planner {
 public:
  Planner(const Scenario& scenario, const Machine& machine, std::shared_ptr<const LayerSet> layers)
      : machine_(machine), layers_(std::move(layers)) {
    plan_.scenario = scenario;
    resolve_degrees(plan_);
    plan_.placement = std::make_unique<Placement>(plan_.scenario.parallel, plan_.scenario.cluster.gpus_per_node);
    plan_.comm = std::make_unique<CommCoster>(machine_, plan_.scenario, *plan_.placement);
    if (!layers_) layers_ = std::make_shared<const LayerSet>(plan_.scenario, machine_, *plan_.comm);
    plan_.split = layers_->split();
    plan_.layers = layers_;
  }

  StepPlan make() && {
    make_schedule_for_plan();
    cut_chunks();
    return std::move(plan_);
  }

 private:
  void make_schedule_for_plan() {
    const Scenario& s = plan_.scenario;
    ScheduleSpec spec;
    spec.name = s.schedule.name == "1f1b" && s.parallel.vpp > 1 ? "interleaved" : s.schedule.name;
    if (s.parallel.pp == 1 && (spec.name == "k3" || spec.name == "interleaved")) spec.name = "1f1b";
    spec.ranks = s.parallel.pp;
    spec.chunks = s.parallel.pp == 1 ? 1 : s.parallel.vpp;
    spec.microbatches = static_cast<int>(plan_.microbatches);
    spec.extra_warmup = s.schedule.extra_warmup;
    spec.split_wgrad = s.schedule.split_wgrad;
    plan_.schedule = make_schedule(spec);
    if (s.moe.overlap_ep) pair_forward_backward(plan_.schedule);
    // Communication kernels of overlapped pairs keep their SMs for the whole chunk (hardware notes 3.6).
    if (has_pairs(plan_.schedule) && s.parallel.ep > 1)
      options_.compute_scale = static_cast<double>(machine_.gpu.sm_count) /
                               std::max(1, machine_.gpu.sm_count - machine_.software.ep_sms);
  }

  double cost(const TimedLayer& l) const {
    return (l.forward.summary.elapsed + l.backward.summary.elapsed).seconds();
  }

  std::vector<int> chunk_starts(int chunks, double first_extra, double last_extra) {
    const int layers = static_cast<int>(plan_.scenario.model.layers.size());
    const std::vector<int>& given = plan_.scenario.parallel.stage_layers;
    std::vector<int> start{0};
    if (!given.empty()) {
      for (int n : given) start.push_back(start.back() + n);
      if (static_cast<int>(given.size()) != chunks || start.back() != layers)
        throw ConfigError(fmt::format("{} entries that sum to {} layers; the schedule has {} chunks and the model {} "
                                      "layers",
                                      given.size(), start.back(), chunks, layers),
                          "parallel.stage_layers");
      return start;
    }
    if (layers % chunks == 0) {
      for (int c = 1; c <= chunks; ++c) start.push_back(c * (layers / chunks));
      return start;
    }
    if (layers < chunks)
      throw ConfigError(fmt::format("{} model chunks (pp x vpp) but only {} layers", chunks, layers), "parallel");
    std::vector<double> costs;
    for (std::size_t i = 0; i < plan_.scenario.model.layers.size(); ++i)
      costs.push_back(cost(*layers_->decoder(i, layers_->policy().any())));
    return balanced_cut(costs, chunks, first_extra, last_extra);
  }

  void cut_chunks() {
    const Scenario& s = plan_.scenario;
    const ModelSpec& m = s.model;
    const int chunks = plan_.schedule.stages_per_chain();
    const TimedLayer *embedding = layers_->embedding(), *head = layers_->head(), *mtp = layers_->mtp();
    const double last_extra = cost(*head) + (mtp ? cost(*mtp) * static_cast<double>(m.mtp_layers) : 0.0);
    const std::vector<int> start = chunk_starts(chunks, cost(*embedding), last_extra);
    for (int c = 0; c < chunks; ++c) {
      Chunk chunk;
      if (c == 0)
        chunk.parts.push_back({ChunkPart::Kind::embedding, -1, embedding, layers_->embedding_parameters()});
      const int first = start[static_cast<std::size_t>(c)], end = start[static_cast<std::size_t>(c) + 1];
      for (int i = first; i < end; ++i) {
        const auto index = static_cast<std::size_t>(i);
        const int in_chunk = i - first;
        const int limit = s.activation.recompute_layers;
        const double share = s.activation.recompute_fraction * (end - first);
        const bool recomputed = layers_->policy().any() && (limit == 0 || in_chunk < limit) && in_chunk < share;
        chunk.parts.push_back({ChunkPart::Kind::layer, i, layers_->decoder(index, recomputed),
                               layers_->parameters(index)});
      }
      if (c == chunks - 1) {
        for (std::int64_t k = 0; mtp && k < m.mtp_layers; ++k)
          chunk.parts.push_back({ChunkPart::Kind::mtp, -1, mtp, layers_->mtp_parameters()});
        chunk.parts.push_back({ChunkPart::Kind::head, -1, head, layers_->head_parameters()});
      }
      chunk.boundary = chunk.parts.empty() ? Bytes(0) : chunk.parts.back().timed->boundary;
      plan_.chunks.push_back(std::move(chunk));
    }
  }

  const Machine& machine_;
  StepPlan plan_;
  std::shared_ptr<const LayerSet> layers_;
};

}  // namespace

StepPlan make_step_plan(const Scenario& scenario, const Machine& machine, std::shared_ptr<const LayerSet> layers) {
  return std::move(Planner(scenario, machine, std::move(layers))).make();
}

std::shared_ptr<const LayerSet> make_layer_set(const Scenario& scenario, const Machine& machine) {
  StepPlan plan;
  plan.scenario = scenario;
  resolve_degrees(plan);
  const Placement placement(plan.scenario.parallel, plan.scenario.cluster.gpus_per_node);
  return std::make_shared<const LayerSet>(plan.scenario, machine, CommCoster(machine, plan.scenario, placement));
}

}  // namespace k3sim
