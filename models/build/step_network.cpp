// See step_network.h. Source: engine-design sections 4 to 7.
#include "models/build/step_network.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "models/build/device_classes.h"
#include "models/build/pair_actions.h"
#include "models/comm/fabric_loader.h"
#include "sim/base/check.h"
#include "sim/engine/engine.h"

namespace k3sim {

ClusterSpec cluster_of(const Scenario& scenario, const Machine& machine) {
  const ClusterConfig& c = scenario.cluster;
  ClusterSpec spec = machine.cluster;
  spec.nodes = c.nodes;
  use_gpus_per_node(spec.node, c.gpus_per_node);
  if (c.oversubscription > 1) spec.fabric.oversubscription = c.oversubscription;
  for (const std::string& text : scenario.network.faults) {
    const auto cut = text.rfind('=');
    const double factor = cut == std::string::npos ? 0.0 : std::strtod(text.c_str() + cut + 1, nullptr);
    spec.faults.push_back({text.substr(0, cut), factor});
  }
  if (spec.nodes == 1) spec.fabric.kind = FabricKind::none;
  return spec;
}

StepNetwork::StepNetwork(const StepPlan& plan, const Machine& machine, const StepGraph& graph,
                         const std::vector<GroupKind>& unfold)
    : plan_(plan),
      machine_(machine),
      graph_(graph),
      topology_(build_topology(cluster_of(plan.scenario, machine))),
      patterns_(plan, topology_, unfold) {
  add_jobs();
  reduction_ = reduce_links(topology_, patterns_.patterns());
  for (const FlowShape& shape : shapes_) {
    FlowPlan& p = work_.plans.emplace_back();
    const TrafficList& pieces = graph_.traffics[shape.traffic].pieces;
    for (std::size_t i = 0; i < pieces.size(); ++i) p.stages.push_back(stage(pieces[i], shape.terms[i]));
  }
}

// One job per communication, shared by the tasks of all its simulated ranks; one plan per distinct traffic and place.
void StepNetwork::add_jobs() {
  std::map<std::pair<std::uint32_t, int>, std::uint32_t> known;
  std::vector<std::uint32_t> job_of_joint(graph_.joints, kNoJob);
  work_.job_of_task.assign(graph_.built.graph.task_count(), kNoJob);
  for (const FlowTask& f : graph_.flow_tasks) {
    std::uint32_t& job = job_of_joint[f.joint];
    if (job != kNoJob) {
      ++work_.jobs[job].members;
    } else {
      const auto [it, fresh] = known.try_emplace({f.traffic, f.replica}, static_cast<std::uint32_t>(shapes_.size()));
      if (fresh) {
        const StageTraffic& t = graph_.traffics[f.traffic];
        FlowShape& shape = shapes_.emplace_back();
        shape.traffic = f.traffic;
        const int replica =
            f.replica < 0 ? TrafficPatterns::kAllReplicas : graph_.replicas[static_cast<std::size_t>(f.replica)];
        for (const Traffic& piece : t.pieces) shape.terms.push_back(patterns_.terms(piece, t.rank, replica));
      }
      job = static_cast<std::uint32_t>(work_.jobs.size());
      work_.jobs.push_back({it->second, 1});
      kind_of_job_.push_back(static_cast<StepTask>(graph_.built.graph.kind(f.task)));
      ++shapes_[it->second].runs;
    }
    work_.job_of_task[f.task.value] = job;
  }
}

// Whether the link serves one GPU alone.
bool StepNetwork::owned(std::uint32_t link) const {
  const Link& l = topology_.links[link];
  const auto is_gpu = [&](std::uint32_t v) { return topology_.vertices[v].kind == VertexKind::gpu; };
  const auto is_nic = [&](std::uint32_t v) { return topology_.vertices[v].kind == VertexKind::nic; };
  const NodeSpec& n = topology_.spec.node;
  return is_gpu(l.from) || is_gpu(l.to) || (n.nics >= n.gpus && (is_nic(l.from) || is_nic(l.to)));
}

// Capacity of an owned link without faults.
double StepNetwork::nominal(std::uint32_t link) const {
  const FabricSpec& f = topology_.spec.fabric;
  switch (topology_.links[link].kind) {
    case LinkClass::nvlink:
      return topology_.spec.node.nvlink.value();
    case LinkClass::nic:
      return f.link_rate.value() * f.payload_efficiency / f.planes_per_nic;
    default:
      return topology_.spec.node.pcie.value();
  }
}

FlowStage StepNetwork::stage(const Traffic& t, const std::vector<TrafficPatterns::Term>& terms) const {
  std::map<std::uint32_t, double> loads;  // by kept link
  for (const TrafficPatterns::Term& term : terms)
    for (const LinkLoad& l : reduction_.patterns[term.pattern]) loads[l.link] += l.load * term.bytes;
  FlowClass flow;
  flow.latency = t.latency;
  const double moving = (t.alone - t.latency).seconds();
  if (loads.empty() || moving <= 0) {  // nothing crosses a link, or latency is all there is
    flow.latency = t.alone;
    flow.cap = Bandwidth(1);
    return {{std::move(flow)}};
  }
  // Sizes are told by what one GPU moves, whatever many others add on shared links: folded and unfolded runs then count
  // the same bytes.
  double most = 0, most_owned = 0;
  for (const auto& [l, load] : loads) {
    most = std::max(most, load);
    if (owned(reduction_.kept[l].link)) most_owned = std::max(most_owned, load);
  }
  const double size = most_owned > 0 ? most_owned : most;
  const double rate = size / moving;
  flow.bytes = Bytes::ceil(size);
  flow.cap = Bandwidth(rate);
  for (const auto& [l, load] : loads) {
    double weight = load / size;
    const std::uint32_t link = reduction_.kept[l].link;
    if (owned(link)) weight = std::min(weight, nominal(link) / rate);
    flow.path.push_back({LinkId(std::size_t{l}), weight});
  }
  return {{std::move(flow)}};
}

TaskTimes StepNetwork::run() {
  std::vector<Bandwidth> capacities;
  for (const KeptLink& k : reduction_.kept) capacities.push_back(topology_.links[k.link].capacity);
  progress_ = std::make_unique<NetworkProgress>(capacities, work_);
  progress_->engine().record_usage();
  const int sms = machine_.gpu.sm_count;
  const bool set_aside = overlaps_expert_exchange(plan_.scenario) && sms > machine_.software.ep_sms;
  const SlowdownTable table(device_slowdown(
      machine_.slowdown, set_aside ? static_cast<double>(sms) / (sms - machine_.software.ep_sms) : 1.0));
  TaskTimes times =
      simulate(graph_.built.graph, graph_.built.durations, {.slowdown = &table, .progress = progress_.get()}).times;
  makespan_ = times.makespan;
  return times;
}

}  // namespace k3sim
