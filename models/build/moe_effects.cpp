// Runs the dispatcher on keyed draws of the routing. Source: k3-facts 3.3-3.7.
#include "models/build/moe_effects.h"

#include <algorithm>

#include "models/moe/moe_layer.h"

namespace k3sim {

namespace {

constexpr int kDraws = 256;        // of one step, over layers and micro-batches
constexpr int kGroupedDraws = 16;  // group-limited routing has to draw single tokens
constexpr int kMostMicroBatches = 16;

// Fitted dispatch rates exist for Hopper and GB200; only ratios and fixed parts are taken from them.
std::string rates_of(const std::string& gpu) {
  for (const char* known : {"h100_sxm", "h200_sxm", "h800_sxm", "h20", "gb200"})
    if (gpu == known) return known;
  return gpu.rfind("b200", 0) == 0 || gpu.rfind("gb300", 0) == 0 ? "gb200" : "h100_sxm";
}

std::vector<int> moe_layers(const ModelSpec& model) {
  std::vector<int> out;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (model.layers[i].ffn.is_moe()) out.push_back(static_cast<int>(i));
  return out;
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

EpRankLoad load_of(const MoeLayerPlan& plan, int rank) {
  const RankDispatch& r = plan.routed.ranks[static_cast<std::size_t>(rank)];
  EpRankLoad load;
  load.row_ratio = plan.row_ratio(rank);
  load.rows = r.rows;
  for (const std::int64_t rows : r.group_rows)
    if (rows > 0) load.group_rows.push_back(static_cast<double>(rows));
  load.replicas_received = r.replicas_received;
  load.replicas_sent = r.replicas_sent;
  load.nvlink_sent = r.dispatch.nvlink_sent;
  load.rdma_sent = r.dispatch.rdma_sent;
  return load;
}

double sent(const DispatchResult& result, LinkBytes RankDispatch::*what, Bytes LinkBytes::*link) {
  double sum = 0;
  for (const RankDispatch& r : result.ranks) sum += (r.*what.*link).as_double();
  return sum / static_cast<double>(result.ranks.size());
}

RoutedTraffic traffic_of(const MoeLayerPlan& plan) {
  const auto over_balanced = [&](LinkBytes RankDispatch::*what, Bytes LinkBytes::*link) {
    const double usual = sent(plan.balanced, what, link);
    return usual > 0 ? sent(plan.routed, what, link) / usual : 1.0;
  };
  RoutedTraffic t;
  t.dispatch_network = over_balanced(&RankDispatch::dispatch, &LinkBytes::rdma_sent);
  t.dispatch_nvlink = over_balanced(&RankDispatch::dispatch, &LinkBytes::nvlink_sent);
  t.combine_network = over_balanced(&RankDispatch::combine, &LinkBytes::rdma_sent);
  t.combine_nvlink = over_balanced(&RankDispatch::combine, &LinkBytes::nvlink_sent);
  t.replica_network = sent(plan.routed, &RankDispatch::replication, &LinkBytes::rdma_sent);
  t.replica_nvlink = sent(plan.routed, &RankDispatch::replication, &LinkBytes::nvlink_sent);
  return t;
}

void add_traffic(RoutedTraffic& sum, const RoutedTraffic& t, double weight) {
  for (double RoutedTraffic::*part :
       {&RoutedTraffic::dispatch_network, &RoutedTraffic::dispatch_nvlink, &RoutedTraffic::combine_network,
        &RoutedTraffic::combine_nvlink, &RoutedTraffic::replica_network, &RoutedTraffic::replica_nvlink})
    sum.*part += weight * t.*part;
}

MoeDraw draw_of(const MoeLayerPlan& plan) {
  MoeDraw d;
  const DispatchTimes& t = plan.routed.time;
  d.dispatch_ratio = plan.dispatch_ratio();
  d.combine_ratio = plan.combine_ratio();
  d.plan = t.plan;
  d.replicate = t.replicate;
  d.gradient_return = t.gradient_return;
  d.traffic = traffic_of(plan);
  d.max_violation = max_violation(plan.expert_rows);
  d.dropped_rows = plan.routed.dropped_rows;
  d.buffer = plan.routed.max_buffer();
  d.expert_rows = plan.expert_rows;
  for (std::size_t r = 0; r < plan.routed.ranks.size(); ++r) {
    d.ranks.push_back(load_of(plan, static_cast<int>(r)));
    if (d.ranks[r].row_ratio > d.ranks[d.busiest].row_ratio) d.busiest = r;
  }
  return d;
}

// The same draw with its distance from balanced loads scaled.
void scale_excess(MoeDraw& d, double factor) {
  const auto away = [factor](double& ratio) { ratio = std::max(0.0, 1.0 + factor * (ratio - 1.0)); };
  for (double* ratio : {&d.dispatch_ratio, &d.combine_ratio, &d.traffic.dispatch_network, &d.traffic.dispatch_nvlink,
                        &d.traffic.combine_network, &d.traffic.combine_nvlink})
    away(*ratio);
  for (EpRankLoad& rank : d.ranks) away(rank.row_ratio);
  d.replicate = scale(d.replicate, factor);
  d.gradient_return = scale(d.gradient_return, factor);
  d.traffic.replica_network *= factor;
  d.traffic.replica_nvlink *= factor;
}

// Replicas and times of one draw, added to the running means.
void add_draw(MoeEffects& e, const MoeDraw& d, double weight) {
  double replicas = 0;
  for (const EpRankLoad& r : d.ranks) {
    replicas += r.replicas_received;
    e.replicas_max = std::max(e.replicas_max, static_cast<double>(r.replicas_received));
  }
  e.row_ratio += weight * d.largest_ratio();
  e.dispatch_ratio += weight * d.dispatch_ratio;
  e.combine_ratio += weight * d.combine_ratio;
  e.plan += scale(d.plan, weight);
  e.replicate += scale(d.replicate, weight);
  e.gradient_return += scale(d.gradient_return, weight);
  add_traffic(e.traffic, d.traffic, weight);
  e.replicas_mean += weight * replicas / static_cast<double>(d.ranks.size());
  e.buffers = std::max(e.buffers, d.buffer);
  e.dropped_rows = std::max(e.dropped_rows, d.dropped_rows);
  e.max_violation += weight * d.max_violation;
}

void take_fixed(MoeEffects& e, const DispatchResult& result) {
  e.present = true;
  e.row_ratio = e.dispatch_ratio = e.combine_ratio = 0;
  e.traffic = {0, 0, 0, 0, 0, 0};
  e.pool = result.pool;
  e.memory_per_layer = result.memory_per_layer;
  e.host_syncs = result.host_syncs;
  e.sms = result.sms;
  e.dynamic_shapes = result.dynamic_shapes;
}

std::shared_ptr<MoeDraws> empty_draws(std::vector<int> layers, const FfnSpec& ffn, const MoeLayerModel& model) {
  const bool grouped = ffn.groups > 1 && ffn.groups_chosen < ffn.groups && model.file_micro_batches() == 0;
  const int budget = grouped ? kGroupedDraws : kDraws;
  if (static_cast<int>(layers.size()) > budget / 2) layers.resize(static_cast<std::size_t>(budget / 2));
  int micro_batches = std::clamp(budget / static_cast<int>(layers.size()), 2, kMostMicroBatches);
  if (model.file_micro_batches() > 0) micro_batches = std::min(micro_batches, model.file_micro_batches());
  return std::make_shared<MoeDraws>(std::move(layers), micro_batches);
}

}  // namespace

MoeEffects MoeEffects::of(const MoeDraw& draw) const {
  MoeEffects e = *this;
  e.dispatch_ratio = draw.dispatch_ratio;
  e.combine_ratio = draw.combine_ratio;
  e.row_ratio = draw.largest_ratio();
  e.plan = draw.plan;
  e.replicate = draw.replicate;
  e.gradient_return = draw.gradient_return;
  e.traffic = draw.traffic;
  return e;
}

MoeEffects moe_effects(const Scenario& s, const Machine& machine, const Placement& placement, std::int64_t tokens) {
  MoeEffects e;
  std::vector<int> layers = moe_layers(s.model);
  if (layers.empty() || s.parallel.ep <= 1) return e;
  const FfnSpec& ffn = s.model.layers[static_cast<std::size_t>(layers.front())].ffn;
  if (ffn.experts % s.parallel.ep != 0) return e;
  const MoeLayerModel model = layer_model(ffn, s, machine, placement, tokens);
  const bool balanced = s.moe.routing.source == "balanced" && s.moe.routing.skew_sigma == 0;
  if (balanced) {
    const MoeLayerPlan plan = model.plan({});
    take_fixed(e, plan.routed);
    add_draw(e, draw_of(plan), 1.0);
    e.row_ratio = e.dispatch_ratio = e.combine_ratio = 1.0;
    return e;
  }
  const std::shared_ptr<MoeDraws> draws = empty_draws(std::move(layers), ffn, model);
  for (const int layer : draws->layers())
    for (int m = 0; m < draws->micro_batches(); ++m) {
      const MoeLayerPlan plan = model.plan({layer, m});
      if (draws->draws.empty()) take_fixed(e, plan.routed);
      draws->draws.push_back(draw_of(plan));
      if (machine.imbalance != 1.0) scale_excess(draws->draws.back(), machine.imbalance);
    }
  for (const MoeDraw& d : draws->draws) add_draw(e, d, 1.0 / static_cast<double>(draws->draws.size()));
  e.draws = draws;
  return e;
}

const MoeEffects& MoeEffectsCache::get(const Scenario& s, const Machine& machine, const Placement& placement,
                                       std::int64_t tokens) {
  const std::vector<int> layers = moe_layers(s.model);
  const Inputs inputs{
      layers,           layers.empty() ? FfnSpec{} : s.model.layers[static_cast<std::size_t>(layers.front())].ffn,
      s.model.hidden,   s.moe,
      s.parallel.ep,    placement.group(GroupKind::ep).ranks_per_node,
      tokens,           rates_of(machine.gpu.name),
      machine.imbalance};
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
