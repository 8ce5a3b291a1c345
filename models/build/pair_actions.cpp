// Neighbouring forward and backward actions become overlapped pairs. Source: Megatron-Core combined 1F1B; k3-facts 2.2
// (DualPipe-type pairing, which K3 itself does not use).
#include "models/build/pair_actions.h"

#include <algorithm>

namespace k3sim {

void pair_forward_backward(Schedule& schedule) {
  for (std::vector<Action>& actions : schedule.actions) {
    std::vector<Action> out;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      const bool pairs = i + 1 < actions.size() && a.kind == ActionKind::kForward &&
                         actions[i + 1].kind == ActionKind::kBackward && a.microbatch != actions[i + 1].microbatch;
      // A stage needs its own forward before the backward of the same micro-batch: those never pair.
      if (pairs) {
        out.push_back(make_overlap(a, actions[i + 1]));
        ++i;
      } else {
        out.push_back(a);
      }
    }
    actions = std::move(out);
  }
}

bool overlaps_expert_exchange(const Scenario& s) {
  return s.parallel.ep > 1 && (s.moe.overlap_ep || s.schedule.name.rfind("dualpipe", 0) == 0);
}

bool has_pairs(const Schedule& schedule) {
  return std::any_of(schedule.actions.begin(), schedule.actions.end(), [](const std::vector<Action>& rank) {
    return std::any_of(rank.begin(), rank.end(), [](const Action& a) { return a.kind == ActionKind::kOverlap; });
  });
}

}  // namespace k3sim
