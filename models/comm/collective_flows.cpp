// Choice of algorithm and calibration of the plans; see the header.
// Source: engine-design notes section 6.
#include "models/comm/collective_flows.h"

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {
namespace {

FlowStage stage_of(FlowClass flow) {
  FlowStage s;
  s.flows.push_back(std::move(flow));
  return s;
}

}  // namespace

void add_algorithm_loads(const FlowContext& c, Algorithm algorithm, Collective kind, double bytes) {
  switch (algorithm) {
    case Algorithm::ring:
      return add_ring_loads(c, bytes, kind);
    case Algorithm::tree:
      return add_tree_loads(c, bytes, false);
    case Algorithm::nvls_tree:
      return add_tree_loads(c, bytes, true);
    case Algorithm::nvls:
      return add_nvls_loads(c, bytes);
    case Algorithm::pat:
      return add_pat_loads(c, bytes);
    case Algorithm::direct:
      return kind == Collective::send_recv ? add_message_loads(c, bytes) : add_all_to_all_loads(c, bytes);
  }
}

PlacedGroup place_group(const Topology& topology, std::span<const int> gpus) {
  PlacedGroup g;
  g.gpus.assign(gpus.begin(), gpus.end());
  const int per_server = topology.spec.node.gpus;
  std::vector<int> sizes;
  int last = -1;
  for (const int gpu : gpus) {
    CS_CHECK(gpu >= 0 && gpu < topology.spec.gpus(), "GPU {} of {}", gpu, topology.spec.gpus());
    if (gpu / per_server != last) sizes.push_back(0);
    last = gpu / per_server;
    ++sizes.back();
  }
  for (const int s : sizes) {
    if (s == sizes.front()) continue;
    throw ConfigError(fmt::format("a group has {} members on one node and {} on another", sizes.front(), s),
                      "parallel");
  }
  g.per_node = sizes.empty() ? 1 : sizes.front();
  return g;
}

CommGroup comm_group(const PlacedGroup& g) {
  return {.ranks = g.ranks(), .nodes = g.nodes(), .ranks_per_node = g.per_node};
}

FlowPlan collective_flows(const CommModel& model, const Router& router, const Topology& topology, Collective kind,
                          Bytes buffer, const PlacedGroup& group, LinkLoads& scratch) {
  FlowPlan plan;
  if (group.ranks() < 2 || buffer == Bytes(0)) return plan;
  const CollectiveTime t = collective_time(model, kind, buffer, comm_group(group));
  const FlowContext c{topology, router, group, scratch};
  add_algorithm_loads(c, t.algorithm, kind, buffer.as_double());
  plan.stages.push_back(stage_of(scratch.take(t.latency, t.time)));
  return plan;
}

FlowPlan two_hop_flows(const Router& router, const Topology& topology, const TwoHopBytes& bytes,
                       const PlacedGroup& group, LinkLoads& scratch) {
  FlowPlan plan;
  add_two_hop_loads({topology, router, group, scratch}, bytes);
  if (!scratch.empty()) plan.stages.push_back(stage_of(scratch.take(bytes.latency, bytes.free_time)));
  return plan;
}

FlowPlan hierarchical_all_reduce_flows(const CommModel& model, const Router& router, const Topology& topology,
                                       Bytes buffer, const PlacedGroup& group, LinkLoads& scratch) {
  FlowPlan plan;
  const auto inside = [&](Collective kind) {
    FlowStage stage;
    for (int n = 0; n < group.nodes(); ++n) {
      PlacedGroup local{{}, group.per_node};
      for (int k = 0; k < group.per_node; ++k) local.gpus.push_back(group.gpu(n, k));
      FlowPlan part = collective_flows(model, router, topology, kind, buffer, local, scratch);
      for (FlowStage& s : part.stages) stage.flows.push_back(std::move(s.flows.front()));
    }
    if (!stage.flows.empty()) plan.stages.push_back(std::move(stage));
  };
  inside(Collective::reduce_scatter);
  FlowStage rails;
  for (int k = 0; k < group.per_node; ++k) {
    PlacedGroup rail{{}, 1};
    for (int n = 0; n < group.nodes(); ++n) rail.gpus.push_back(group.gpu(n, k));
    FlowPlan part =
        collective_flows(model, router, topology, Collective::all_reduce, buffer.share(group.per_node), rail, scratch);
    for (FlowStage& s : part.stages) rails.flows.push_back(std::move(s.flows.front()));
  }
  if (!rails.flows.empty()) plan.stages.push_back(std::move(rails));
  inside(Collective::all_gather);
  return plan;
}

}  // namespace k3sim
