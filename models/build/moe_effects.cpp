// Runs the dispatcher on keyed draws of the routing and averages the slowest rank. Source: k3-facts 3.3-3.7.
#include "models/build/moe_effects.h"

#include <algorithm>

#include "models/moe/moe_layer.h"

namespace k3sim {

namespace {

constexpr int kDraws = 16;

// Fitted dispatch rates exist for Hopper and GB200; only ratios and fixed parts are taken from them.
std::string rates_of(const std::string& gpu) {
  for (const char* known : {"h100_sxm", "h200_sxm", "h800_sxm", "h20", "gb200"})
    if (gpu == known) return known;
  return gpu.rfind("b200", 0) == 0 || gpu.rfind("gb300", 0) == 0 ? "gb200" : "h100_sxm";
}

const FfnSpec* first_moe(const ModelSpec& model) {
  for (const LayerSpec& l : model.layers)
    if (l.ffn.is_moe()) return &l.ffn;
  return nullptr;
}

MoeLayerModel layer_model(const FfnSpec& ffn, const Scenario& s, const Machine& machine, const Placement& placement,
                          std::int64_t tokens) {
  MoeLayerSetup setup;
  setup.ffn = ffn;
  setup.hidden = s.model.hidden;
  setup.config = s.moe;
  setup.ep = s.parallel.ep;
  setup.domain_ranks = placement.group(GroupKind::ep).ranks_per_node;
  setup.tokens_per_rank = tokens;
  setup.rates = dispatch_rates(rates_of(machine.gpu.name));
  return MoeLayerModel(setup);
}

// Replicas and times of one draw, added to the running means.
void add_draw(MoeEffects& e, const MoeLayerPlan& plan, double weight) {
  double rows = 0, replicas = 0, most = 0;
  for (std::size_t r = 0; r < plan.routed.ranks.size(); ++r) {
    rows = std::max(rows, plan.row_ratio(static_cast<int>(r)));
    replicas += plan.routed.ranks[r].replicas_received;
    most = std::max(most, static_cast<double>(plan.routed.ranks[r].replicas_received));
  }
  e.row_ratio += weight * rows;
  e.dispatch_ratio += weight * plan.dispatch_ratio();
  e.combine_ratio += weight * plan.combine_ratio();
  e.plan += scale(plan.routed.time.plan, weight);
  e.replicate += scale(plan.routed.time.replicate, weight);
  e.gradient_return += scale(plan.routed.time.gradient_return, weight);
  e.replicas_mean += weight * replicas / static_cast<double>(plan.routed.ranks.size());
  e.replicas_max = std::max(e.replicas_max, most);
  e.buffers = std::max(e.buffers, plan.routed.max_buffer());
  e.dropped_rows = std::max(e.dropped_rows, plan.routed.dropped_rows);
}

}  // namespace

MoeEffects moe_effects(const Scenario& s, const Machine& machine, const Placement& placement, std::int64_t tokens) {
  MoeEffects e;
  const FfnSpec* ffn = first_moe(s.model);
  if (!ffn || s.parallel.ep <= 1 || ffn->experts % s.parallel.ep != 0) return e;
  const MoeLayerModel model = layer_model(*ffn, s, machine, placement, tokens);
  const bool balanced = s.moe.routing.source == "balanced" && s.moe.routing.skew_sigma == 0;
  const int draws = balanced ? 1 : kDraws;
  e.present = true;
  e.row_ratio = e.dispatch_ratio = e.combine_ratio = 0;
  for (int i = 0; i < draws; ++i) {
    const MicroBatchId id{i % 4, i / 4};
    const MoeLayerPlan plan = model.plan(id);
    add_draw(e, plan, 1.0 / draws);
    e.max_violation += max_violation(model.counts(id).per_expert()) / draws;
    e.pool = plan.routed.pool;
    e.memory_per_layer = plan.routed.memory_per_layer;
    e.host_syncs = plan.routed.host_syncs;
    e.sms = plan.routed.sms;
    e.dynamic_shapes = plan.routed.dynamic_shapes;
  }
  if (balanced) e.row_ratio = e.dispatch_ratio = e.combine_ratio = 1.0;
  return e;
}

const MoeEffects& MoeEffectsCache::get(const Scenario& s, const Machine& machine, const Placement& placement,
                                       std::int64_t tokens) {
  const FfnSpec* ffn = first_moe(s.model);
  const Inputs inputs{ffn ? *ffn : FfnSpec{},
                      s.model.hidden,
                      s.moe,
                      s.parallel.ep,
                      placement.group(GroupKind::ep).ranks_per_node,
                      tokens,
                      rates_of(machine.gpu.name)};
  Entry* entry = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.inputs == inputs; });
    entry = known != entries_.end() ? &*known : &entries_.emplace_back();
    if (known == entries_.end()) entry->inputs = inputs;
  }
  std::call_once(entry->once, [&] { entry->effects = moe_effects(s, machine, placement, tokens); });
  return entry->effects;
}

}  // namespace k3sim
