// Scenario to dispatcher: the routing law, the workload, the policy. The balanced result is computed once.
// Source: issue of the MoE model; k3-facts sections 2.9 and 3.7.
// Valid for tokens_per_rank below 2^31 / (ranks * topk).
#include "models/moe/moe_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {
namespace {

double ratio(Time routed, Time balanced) {
  return balanced > Time() ? routed / balanced : 1.0;
}

std::string registry_name(const MoeConfig& config) {
  return config.dispatcher == "alltoall" && config.capacity_factor > 0 ? "alltoall_drop" : config.dispatcher;
}

// The table for a layer and micro-batch: the file's layers and their micro-batches repeat.
const ExpertCounts& pick(const std::vector<RoutedCounts>& tables, MicroBatchId id) {
  std::vector<std::size_t> first;  // first table of every layer in the file
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (i == 0 || tables[i].id.layer != tables[i - 1].id.layer) first.push_back(i);
  }
  const auto exact =
      std::find_if(first.begin(), first.end(), [&](std::size_t i) { return tables[i].id.layer == id.layer; });
  const std::size_t at = exact != first.end() ? static_cast<std::size_t>(exact - first.begin())
                                              : static_cast<std::size_t>(id.layer) % first.size();
  const std::size_t begin = first[at], end = at + 1 < first.size() ? first[at + 1] : tables.size();
  return tables[begin + static_cast<std::size_t>(id.micro_batch) % (end - begin)].counts;
}

}  // namespace

double MoeLayerPlan::dispatch_ratio() const {
  return ratio(routed.time.dispatch + routed.time.dispatch_local,
               balanced.time.dispatch + balanced.time.dispatch_local);
}

double MoeLayerPlan::combine_ratio() const {
  return ratio(routed.time.combine + routed.time.combine_local, balanced.time.combine + balanced.time.combine_local);
}

double MoeLayerPlan::row_ratio(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t even = balanced.ranks[r].padded_rows;
  return even > 0 ? static_cast<double>(routed.ranks[r].padded_rows) / static_cast<double>(even) : 1.0;
}

RoutingSpec routing_spec(const RoutingConfig& config, const FfnSpec& ffn) {
  RoutingSpec spec;
  spec.seed = config.seed;
  spec.expert_groups = static_cast<int>(ffn.groups);
  spec.topk_groups = static_cast<int>(ffn.groups_chosen);
  spec.correlated_with_rank = config.correlation == "rank";
  spec.micro_batch_sigma = config.skew_sigma;
  spec.layer_sigma = config.layer_sigma;
  if (config.source == "lognormal" && config.skew_sigma + config.layer_sigma > 0) spec.kind = RoutingKind::kLogNormal;
  if (config.source == "dirichlet" && config.skew_sigma > 0) {
    spec.kind = RoutingKind::kDirichlet;
    spec.dirichlet_alpha = 1.0 / std::expm1(config.skew_sigma * config.skew_sigma);
  }
  return spec;
}

ExpertCounts balanced_counts(const RoutingShape& shape) {
  ExpertCounts counts(shape.ranks, shape.experts);
  const std::int64_t entries = std::int64_t{shape.tokens_per_rank} * shape.topk;
  const std::int64_t each = entries / shape.experts, rest = entries % shape.experts;
  for (int r = 0; r < shape.ranks; ++r) {
    // The rest starts where the previous rank's ended, so that the sums over ranks stay within one of each other.
    const std::int64_t start = r * rest % shape.experts;
    for (int e = 0; e < shape.experts; ++e) {
      const std::int64_t position = (e - start + shape.experts) % shape.experts;
      counts.at(r, e) = static_cast<std::int32_t>(each + (position < rest ? 1 : 0));
    }
  }
  return counts;
}

MoeLayerModel::MoeLayerModel(MoeLayerSetup setup)
    : setup_(std::move(setup)),
      routing_(routing_spec(setup_.config.routing, setup_.ffn)),
      dispatch_(find_dispatcher(registry_name(setup_.config)).run) {
  shape_ = {.ranks = setup_.ep,
            .experts = static_cast<int>(setup_.ffn.experts),
            .topk = static_cast<int>(setup_.ffn.topk),
            .tokens_per_rank = static_cast<int>(setup_.tokens_per_rank)};
  if (shape_.ranks <= 0 || shape_.experts <= 0 || shape_.experts % shape_.ranks != 0) {
    throw ConfigError(fmt::format("{} experts do not divide over ep {}", shape_.experts, shape_.ranks), "parallel.ep");
  }
  if (setup_.config.routing.source == "file") {
    file_counts_ = read_counts_csv(setup_.config.routing.file, shape_.experts, shape_.ranks);
  }
  balanced_ = run(balanced_counts(shape_), nullptr);
}

ExpertCounts MoeLayerModel::counts(MicroBatchId id) const {
  if (!file_counts_.empty()) return pick(file_counts_, id);
  return routing_.kind == RoutingKind::kUniform ? balanced_counts(shape_) : draw_counts(routing_, shape_, id);
}

ExpertCounts MoeLayerModel::history(int layer) const {
  ExpertCounts sum(shape_.ranks, shape_.experts);
  if (file_counts_.empty()) {
    RoutingSpec lasting = routing_;
    lasting.micro_batch_sigma = 0;
    if (lasting.kind != RoutingKind::kLogNormal) return balanced_counts(shape_);
    const std::vector<double> pi =
        inclusion_probability(expert_popularity(lasting, shape_, {.layer = layer}), shape_.topk);
    for (int r = 0; r < shape_.ranks; ++r)
      for (int e = 0; e < shape_.experts; ++e)
        sum.at(r, e) = static_cast<std::int32_t>(std::lround(pi[static_cast<std::size_t>(e)] * shape_.tokens_per_rank));
    return sum;
  }
  const int tables = std::max(1, file_micro_batches());
  std::vector<std::int64_t> total(sum.tokens.size(), 0);
  for (int m = 0; m < tables; ++m) {
    const ExpertCounts& one = pick(file_counts_, {.layer = layer, .micro_batch = m});
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += one.tokens[i];
  }
  for (std::size_t i = 0; i < total.size(); ++i) sum.tokens[i] = static_cast<std::int32_t>(total[i] / tables);
  return sum;
}

DispatchResult MoeLayerModel::run(ExpertCounts counts, const ExpertCounts* history) const {
  DispatchWorkload w;
  w.counts = std::move(counts);
  w.topk = shape_.topk;
  w.width = setup_.ffn.latent > 0 ? setup_.ffn.latent : setup_.hidden;
  w.dispatch_bytes_per_value = setup_.dispatch_bytes_per_value;
  w.combine_bytes_per_value = setup_.combine_bytes_per_value;
  w.expert = {.width = w.width, .intermediate = setup_.ffn.expert_intermediate};
  w.domain_ranks = std::min(setup_.domain_ranks, setup_.ep);
  const std::int64_t domains = setup_.ep / w.domain_ranks;
  // A group of experts is a domain (or part of one) when there are at least as many groups as domains.
  if (setup_.ffn.groups > 1 && setup_.ffn.groups >= domains) {
    w.domain_limit = static_cast<int>(std::min(domains, setup_.ffn.groups_chosen));
  }
  DispatchPolicy policy;
  if (setup_.config.capacity_factor > 0) policy.capacity_factor = setup_.config.capacity_factor;
  policy.tolerance = setup_.config.tolerance;
  policy.redundant_per_rank = setup_.config.redundant_experts;
  policy.history = history;
  return dispatch_(w, policy, setup_.rates);
}

MoeLayerPlan MoeLayerModel::plan(MicroBatchId id) const {
  ExpertCounts drawn = counts(id);
  std::vector<std::int64_t> per_expert = drawn.per_expert();
  if (setup_.config.dispatcher != "eplb") return {run(std::move(drawn), nullptr), balanced_, std::move(per_expert)};
  const ExpertCounts past = history(id.layer);
  return {run(std::move(drawn), &past), balanced_, std::move(per_expert)};
}

int MoeLayerModel::file_micro_batches() const {
  int longest = 0;
  for (std::size_t i = 0, first = 0; i < file_counts_.size(); ++i) {
    if (file_counts_[i].id.layer != file_counts_[first].id.layer) first = i;
    longest = std::max(longest, static_cast<int>(i - first) + 1);
  }
  return longest;
}

}  // namespace k3sim
