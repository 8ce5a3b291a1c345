// Runs plan, graph, evaluator, breakdown and memory, and sums up. Source: product-spec section 4 (definitions of MFU,
// HFU and the summary keys); engine-design section 14 (error bars from held-out residuals).
#include "models/build/step.h"

#include "models/build/pair_actions.h"
#include "models/build/router_balancing.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/transformer/context_parallel.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "sim/net/topology_checks.h"

namespace k3sim {

namespace {

struct CostAudit {
  Provenance worst_tier = Provenance::measured;
  double seconds = 0, weak_seconds = 0;                  // weak: datasheet or assumed
  std::array<double, kKernelFamilies> family_seconds{};  // for the error bar
  std::array<double, kKernelFamilies> family_p95{};
  double matrix_flops = 0;  // executed by one rank of every stage
  std::string missing;
};

void audit_pass(CostAudit& a, const TimedPass& pass, double times) {
  for (const TimedItem& i : pass.items) {
    const double t = i.time.seconds() * times;
    a.worst_tier = worst(a.worst_tier, i.provenance);
    if (i.provenance == Provenance::missing && a.missing.empty()) a.missing = i.name;
    a.seconds += t;
    if (i.provenance >= Provenance::datasheet) a.weak_seconds += t;
    if (i.is_comm) continue;
    const auto f = static_cast<std::size_t>(i.family);
    a.family_seconds[f] += t;
    a.family_p95[f] += t * (i.p95_ratio - 1.0);
    a.matrix_flops += i.flops.value() * times;
  }
}

CostAudit audit_costs(const StepPlan& plan) {
  CostAudit a;
  const auto n = static_cast<double>(plan.microbatches * plan.schedule.slices);
  for (const Chunk& c : plan.chunks)
    for (const ChunkPart& p : c.parts) {
      audit_pass(a, p.timed->forward, n);
      audit_pass(a, p.timed->backward, n);
    }
  return a;
}

// Kernel families err independently of each other: root sum of squares of their weighted 95th percentiles.
double relative_error_bar(const CostAudit& a) {
  double sum = 0;
  for (double e : a.family_p95) sum += e * e;
  return a.seconds > 0 ? std::sqrt(sum) / a.seconds : 0.0;
}

std::uint64_t fingerprint(const StepGraph& graph, const TaskTimes& times) {
  Fingerprint f;
  const TaskGraph& g = graph.built.graph;
  for (std::uint32_t t = 0; t < g.task_count(); ++t) {
    f.add(static_cast<std::uint64_t>(times.finish[t].picoseconds()));
    f.add(static_cast<std::uint64_t>(g.kind(TaskId(t))));
  }
  return f.value();
}

RankBreakdown mean_of(const std::vector<RankBreakdown>& ranks) {
  RankBreakdown m;
  const auto n = static_cast<double>(ranks.size());
  const auto mean = [&](Time RankBreakdown::*field) {
    double sum = 0;
    for (const RankBreakdown& r : ranks) sum += (r.*field).seconds();
    m.*field = Time::from_seconds_ceil(sum / n);
  };
  for (Time RankBreakdown::*f :
       {&RankBreakdown::compute, &RankBreakdown::recompute, &RankBreakdown::vision, &RankBreakdown::optimizer,
        &RankBreakdown::tp, &RankBreakdown::cp, &RankBreakdown::ep, &RankBreakdown::pp, &RankBreakdown::dp,
        &RankBreakdown::offload, &RankBreakdown::bubble, &RankBreakdown::host, &RankBreakdown::wait})
    mean(f);
  for (Time BubbleCauses::*f :
       {&BubbleCauses::warm_up, &BubbleCauses::cool_down, &BubbleCauses::imbalance, &BubbleCauses::dependency}) {
    double sum = 0;
    for (const RankBreakdown& r : ranks) sum += (r.why.*f).seconds();
    m.why.*f = Time::from_seconds_ceil(sum / n);
  }
  return m;
}

void summarize_rates(StepSummary& s, const StepPlan& plan, const Machine& machine, const CostAudit& audit) {
  const Scenario& sc = plan.scenario;
  const double step = s.step.seconds(), gpus = sc.cluster.gpus();
  const double tokens = static_cast<double>(plan.global_sequences * sc.batch.sequence);
  s.tokens_per_s_per_gpu = tokens / step / gpus;
  const double flops = trained_flops_per_token(sc).value() * tokens;
  s.model_tflops_per_gpu = flops / step / gpus / kTera;
  const Dtype d = plan.split.linear_dtype;
  const double peak = (is_fp8(d) ? machine.gpu.fp8_dense : machine.gpu.bf16_dense).value();
  s.mfu_pct = 100.0 * s.model_tflops_per_gpu * kTera / peak;
  // One rank of every stage was audited; all its replicas execute the same.
  s.hfu_pct = 100.0 * audit.matrix_flops / static_cast<double>(plan.placement->pp()) / step / peak;
  const double price =
      sc.cluster.price_per_gpu_hour > 0 ? sc.cluster.price_per_gpu_hour : machine.gpu.price_per_gpu_hour;
  s.cost_usd_per_step = price * gpus * step / 3600.0;
}

void summarize_memory(StepSummary& s, const std::vector<RankMemory>& memory, Bytes capacity, Bytes host,
                      std::int64_t gpus_per_node) {
  s.capacity = capacity;
  for (const RankMemory& m : memory) {
    if (m.reserved + m.outside > s.peak_reserved) {
      s.peak_reserved = m.reserved + m.outside;
      s.worst_memory_rank = m.rank;
    }
    s.peak_allocated = std::max(s.peak_allocated, m.allocated);
    s.short_by = std::max(s.short_by, m.short_by);
  }
  for (const RankMemory& m : memory) s.host_peak = std::max(s.host_peak, m.host() * gpus_per_node);
  s.host_capacity = host;
  if (host > Bytes(0) && s.host_peak > host) s.host_short_by = s.host_peak - host;
  s.fits = s.short_by == Bytes(0) && s.host_short_by == Bytes(0);
}

std::vector<std::string> folded_dimensions(const StepPlan& plan, const std::vector<GroupKind>& unfold) {
  const ParallelConfig& p = plan.scenario.parallel;
  const auto unfolded = [&](GroupKind k) { return std::find(unfold.begin(), unfold.end(), k) != unfold.end(); };
  std::vector<std::string> out;
  if (p.tp > 1 && !unfolded(GroupKind::tp)) out.emplace_back("tp");
  if (p.cp > 1 && !unfolded(GroupKind::cp)) out.emplace_back("cp");
  if (p.ep > 1 && !unfolded(GroupKind::dp) && !unfolded(GroupKind::ep)) out.emplace_back("ep");
  if (p.dp > 1 && !unfolded(GroupKind::dp)) out.emplace_back("dp");
  return out;
}

// Tasks of the step at kernel detail with one rank per stage.
std::int64_t folded_tasks(const StepPlan& plan) {
  std::int64_t tasks = 0;
  for (const Chunk& c : plan.chunks)
    for (const ChunkPart& p : c.parts)
      tasks += static_cast<std::int64_t>(p.timed->forward.items.size() + p.timed->backward.items.size());
  return tasks * plan.microbatches;
}

// Ranks that routing makes different cannot be one: every member of an expert-parallel group gets its own rows.
// Unfolded ranks meet at their exchanges, which only kernel detail shows.
void unfold_stragglers(const StepPlan& plan, StepGraphOptions& options) {
  const auto unfolded = [&](GroupKind k) {
    return std::find(options.unfold.begin(), options.unfold.end(), k) != options.unfold.end();
  };
  const MoeEffects& moe = plan.layers->moe();
  const bool small = folded_tasks(plan) * plan.scenario.parallel.ep <= options.straggler_tasks;
  const bool kernels = options.detail == StepGraphOptions::Detail::kernel;
  if (kernels && small && moe.draws && moe.draws->stragglers() && !unfolded(GroupKind::dp) && !unfolded(GroupKind::ep))
    options.unfold.push_back(GroupKind::ep);
  if (unfolded(GroupKind::ep)) options.detail = StepGraphOptions::Detail::kernel;
}

struct SteppedGraph {
  StepGraph graph;
  TaskTimes times;
  std::vector<GroupKind> unfold;
};

// Flows need one task per kernel: coarse steps (searches) have closed forms on an empty network.
bool wants_flows(const StepPlan& plan, const Machine& machine, const StepGraphOptions& options) {
  return plan.scenario.network.mode == "flows" && options.detail == StepGraphOptions::Detail::kernel &&
         machine.cluster.node.nvlink > Bandwidth(0);
}

SteppedGraph run_step(const StepPlan& plan, const Machine& machine, const StepOptions& step,
                      StepNetworkReport& network) {
  StepGraphOptions options = step.graph;
  unfold_stragglers(plan, options);
  options.flows = wants_flows(plan, machine, options);
  // Overlapped pairs interleave kernels of two micro-batches: one task per pass cannot show that.
  if (has_pairs(plan.schedule)) options.detail = StepGraphOptions::Detail::kernel;
  SteppedGraph out{build_step_graph(plan, machine, options), {}, options.unfold};
  if (!options.flows) {
    out.times = longest_path(out.graph.built.graph, out.graph.built.durations);
    return out;
  }
  const auto reason = reason_to_unfold(cluster_of(plan.scenario, machine));
  NetworkUnfolding unfolding = NetworkUnfolding::none;
  const auto missing = static_cast<std::size_t>(plan.placement->replicas()) / out.graph.replicas.size();
  if (reason && missing > 1) {
    unfolding = NetworkUnfolding::flows;
    if (out.graph.built.graph.task_count() * missing <= step.max_unfolded_tasks) {
      unfolding = NetworkUnfolding::ranks;
      out.unfold = options.unfold = {GroupKind::tp, GroupKind::cp, GroupKind::dp};
      out.graph = build_step_graph(plan, machine, options);
    }
  }
  StepNetwork net(plan, machine, out.graph, out.unfold);
  out.times = net.run();
  network = net.report();
  network.unfolding = unfolding;
  if (unfolding != NetworkUnfolding::none) network.unfold_reason = *reason;
  return out;
}

}  // namespace

Flops trained_flops_per_token(const Scenario& s) {
  ModelSpec counted = s.model;
  if (!s.mtp) counted.mtp_layers = 0;
  // Tokens of packed documents see their own document only.
  const std::int64_t attended =
      s.batch.documents.empty() ? s.batch.sequence : static_cast<std::int64_t>(mean_document(s.batch.documents));
  return Flops(3.0 * model_flops_per_token(counted, attended).value());
}

StepPrediction predict_step(const Scenario& scenario, const Machine& machine, const StepOptions& options) {
  StepPrediction out;
  StepPlan plan = make_step_plan(scenario, machine, options.reuse);
  const CostAudit audit = audit_costs(plan);
  if (audit.worst_tier >= Provenance::assumed && !options.allow_assumed)
    throw ConfigError(fmt::format("no calibration to anchor the cost of '{}' on {}: {:.1f} % of the work is assumed",
                                  audit.missing, machine.gpu.name, 100.0 * audit.weak_seconds / audit.seconds),
                      "cluster.gpu");
  StepSummary& s = out.summary;
  auto [graph, times, unfold] = run_step(plan, machine, options, s.network);
  s.step = step_period(graph, times);
  s.step_p95 = scale(s.step, 1.0 + relative_error_bar(audit));
  s.provenance = audit.worst_tier;
  s.assumed_pct = audit.seconds > 0 ? 100.0 * audit.weak_seconds / audit.seconds : 0.0;
  s.fingerprint = fingerprint(graph, times);
  s.folded = folded_dimensions(plan, unfold);
  out.moe = plan.layers->moe();
  out.router_statistics = router_statistics_bytes(plan);
  out.router_statistics_time = router_statistics_time(plan);
  out.ranks = break_down(graph, times);
  find_imbalance(plan, out.ranks);
  s.mean = mean_of(out.ranks);
  s.bubble_pct = 100.0 * s.mean.bubble.seconds() / s.step.seconds();
  out.memory = memory_per_rank(plan, machine, options.memory);
  summarize_memory(s, out.memory, scenario.cluster.memory_override.value_or(machine.gpu.usable_memory),
                   machine.host.memory, scenario.cluster.gpus_per_node);
  summarize_rates(s, plan, machine, audit);
  out.overlap = overlap_report(plan, machine);
  if (options.keep_graph) {
    for (int rank = 0; rank < plan.schedule.ranks; ++rank)
      out.memory_over_time.push_back(memory_steps(plan, rank, machine.software));
    out.plan = std::move(plan);
    out.graph = std::move(graph);
    out.times = std::move(times);
  }
  return out;
}

}  // namespace k3sim
