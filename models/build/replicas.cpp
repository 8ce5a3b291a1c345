// Representative ranks of a stage. Source: engine-design section 7.
#include "models/build/replicas.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

std::vector<int> represented_replicas(const StepPlan& plan, const std::vector<GroupKind>& unfold) {
  const Placement& p = *plan.placement;
  const ParallelConfig& c = plan.scenario.parallel;
  const auto folded = [&](GroupKind k) { return std::find(unfold.begin(), unfold.end(), k) == unfold.end(); };
  const auto position = [&](GroupKind k, int replica) {
    const std::vector<int> members = p.members(k, replica);
    return static_cast<int>(std::find(members.begin(), members.end(), replica) - members.begin());
  };
  const std::vector<int> peers = c.ep > 1 ? p.members(GroupKind::ep, 0) : std::vector<int>{0};
  std::vector<int> out;
  for (int r = 0; r < p.replicas(); ++r) {
    const bool tp_zero = c.tp == 1 || position(GroupKind::tp, r) == 0;
    const bool cp_zero = c.cp == 1 || position(GroupKind::cp, r) == 0;
    const bool dp_zero = c.dp == 1 || position(GroupKind::dp, r) / c.cp == 0;  // the dp group spans dp x cp
    const bool expert_peer = !folded(GroupKind::ep) && std::find(peers.begin(), peers.end(), r) != peers.end();
    if (expert_peer || ((!folded(GroupKind::tp) || tp_zero) && (!folded(GroupKind::cp) || cp_zero) &&
                        (!folded(GroupKind::dp) || dp_zero)))
      out.push_back(r);
  }
  CS_CHECK(!out.empty(), "no representative rank of {}", p.replicas());
  return out;
}

}  // namespace k3sim
