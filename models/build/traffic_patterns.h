// Which links a communication of one pipeline rank loads, per byte of its size, by all ranks that it stands for.
//
// A task of a simulated (represented) rank stands for the same task of every rank folded into it, so a pattern adds the
// loads of all their groups: physical links carry their whole load in folded runs as well. Patterns are kept apart by
// (kind, algorithm, group, pipeline rank, represented group) and scale with the size.
// Source: engine-design sections 5 to 7 ("keep the physical link load complete").
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "models/build/step_graph.h"
#include "models/comm/collective_flows.h"

namespace k3sim {

struct LinkLoad {
  std::uint32_t link = 0;
  double load = 0;  // bytes on the link per byte of the communication's size
};
using Pattern = std::vector<LinkLoad>;  // by ascending link

class TrafficPatterns {
 public:
  // unfold: dimensions whose ranks are simulated themselves. Requires: everything outlives this object.
  TrafficPatterns(const StepPlan& plan, const Topology& topology, const std::vector<GroupKind>& unfold);

  struct Term {
    std::uint32_t pattern = 0;
    double bytes = 0;
  };
  // What `t` puts on links when the replica `replica` of pipeline rank `rank` runs it: a sum of patterns. kAllReplicas:
  // all of them together.
  static constexpr int kAllReplicas = -1;
  std::vector<Term> terms(const Traffic& t, int rank, int replica);
  const std::vector<Pattern>& patterns() const { return patterns_; }

 private:
  struct Key {
    Traffic shape;  // without sizes and times
    bool nvlink_part = false;
    int rank = 0, leader = 0;  // leader of the represented group, or kAllReplicas
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  int representative(int replica) const;
  std::vector<int> members(const Traffic& t, int replica) const;
  std::uint32_t pattern(const Traffic& t, bool nvlink_part, int rank, int replica);
  Pattern make(const Key& key);
  void add_group(const Key& key, const std::vector<int>& group, LinkLoads& loads) const;
  void add_rank(const Key& key, int replica, LinkLoads& loads) const;
  int gpu(int rank, int replica) const { return rank * replicas_ + replica; }

  const StepPlan& plan_;
  const Topology& topology_;
  Router router_;
  LinkLoads loads_;
  int replicas_;
  std::vector<int> representative_;  // by replica
  std::map<Key, std::uint32_t> index_;
  std::vector<Pattern> patterns_;
};

}  // namespace k3sim
