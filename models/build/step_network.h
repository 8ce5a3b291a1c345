// The network under one step: communication tasks, copies and sends of a StepGraph as flows over the cluster's links,
// and what they did to the links.
//
//   duration   alone, the calibrated one (closed forms of models/comm); beside others, max-min shares of the links
//   bytes      by the algorithm that NCCL's tuner chooses, of all ranks that a simulated one stands for
//   weights    of links that belong to one GPU never ask for more than the link at the calibrated rate: measured
//              durations win over byte counts; trunks, PCIe uplinks and host memory may well be the bottleneck
// Source: engine-design sections 4 to 7.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/build/link_reduction.h"
#include "models/build/machine.h"
#include "sim/graph/longest_path.h"
#include "sim/net/network_report.h"

namespace k3sim {

// Seconds of one simulated rank, in the mean over all.
struct TrafficLoss {
  std::string kind;  // tp, cp, ep, pp, dp, offload
  double alone = 0;  // what its communications would take on a free network
  double lost = 0;   // beyond that, because links were shared or slower than calibrated
};

enum class NetworkUnfolding : std::uint8_t {
  none,   // equal ranks see equal networks
  ranks,  // every rank of a stage is simulated
  flows,  // every rank's bytes are on its own links; a stage goes on when its slowest rank may
};

struct StepNetworkReport {
  bool flows = false;  // false: closed forms on an empty network
  NetworkUnfolding unfolding = NetworkUnfolding::none;
  std::string unfold_reason;
  std::vector<LinkClassUsage> classes;
  std::vector<HotLink> hottest;  // by mean utilisation
  std::vector<TrafficLoss> losses;
  std::size_t links = 0, kept_links = 0;
  std::size_t communications = 0;  // tasks that moved bytes
  std::uint64_t completions = 0;   // flow classes that ended
  double lost() const;
};

ClusterSpec cluster_of(const Scenario& scenario, const Machine& machine);

class StepNetwork {
 public:
  // Requires: a graph built with flows; everything outlives this object.
  StepNetwork(const StepPlan& plan, const Machine& machine, const StepGraph& graph,
              const std::vector<GroupKind>& unfold);

  // Times of the graph on this network. Once.
  TaskTimes run();
  // Requires: run() has been called.
  StepNetworkReport report() const;

 private:
  void add_jobs();
  std::uint32_t plan_of(std::uint32_t traffic, int replica);
  FlowStage stage(const Traffic& t, const std::vector<TrafficPatterns::Term>& terms) const;
  bool owned(std::uint32_t link) const;
  double nominal(std::uint32_t link) const;
  void report_links(StepNetworkReport& out) const;
  void report_losses(StepNetworkReport& out) const;

  struct FlowShape {
    std::uint32_t traffic = 0;
    std::vector<std::vector<TrafficPatterns::Term>> terms;  // by piece
    std::size_t runs = 0;
  };

  const StepPlan& plan_;
  const Machine& machine_;
  const StepGraph& graph_;
  Topology topology_;
  TrafficPatterns patterns_;
  std::vector<FlowShape> shapes_;  // by plan
  LinkReduction reduction_;
  NetworkWork work_;
  std::vector<StepTask> kind_of_job_;
  std::unique_ptr<NetworkProgress> progress_;
  Time makespan_;
};

}  // namespace k3sim
