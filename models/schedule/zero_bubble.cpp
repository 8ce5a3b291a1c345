// Zero-bubble schedules on one stage per rank: the backward is split, and weight gradients fill what would be idle.
// Rank r runs its warm-up forwards, then F I in turn, the weight gradients trailing by a lag that grows with r:
//   ZB-H1: warm-up p - 1 - r, lag r, activations p (F..W) everywhere
//          bubble (p - 1)(F + B - W) for m >= p (published)
//   ZB-H2: warm-up 2(p - 1 - r), lag 2r, activations min(m, 2p - 1)
//          bubble (p - 1)(F + B - 2W) for m >= 2p - 1 (published), W more for each micro-batch below (derived)
// The bubble is the largest (end - start) of a rank beyond its work: ranks may start and stop at different times.
// Holds for W <= min(F, B) and, H2, 2W <= F + B.
// Source: arXiv 2401.10241 section 2 and figures 2, 3 (handcrafted schedules).
//
// Derivation of both, with the last rank's lag L = p - 1 or 2(p - 1): that rank starts after p - 1 forwards and never
// waits; its last input gradient ends after m (F + B) and the max(0, m - 1 - L) weight gradients that the lag lets it
// run; p - 1 input gradients and a weight gradient later the first rank ends. Beyond m (F + B + W) that leaves
// (p - 1)(F + B) less min(m - 1, L) W. ZB-H2 is optimal for F = B = W and m < 2p - 1: the first rank has only m
// forwards to run until its first input gradient arrives, 2p - 1 forward times after its start.
#include <algorithm>

#include "models/schedule/generators.h"

namespace k3sim {

namespace {
Schedule zero_bubble(const ScheduleSpec& spec, int warmup_per_rank, int lag_per_rank) {
  if (spec.chunks != 1) refuse_schedule(spec, "chunks", "has one stage per rank; use zb_v for two");
  Schedule s = looped_schedule(spec, 1);
  const int m = s.microbatches;
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    const int warmup = std::min(m, warmup_per_rank * (s.ranks - 1 - rank) + spec.extra_warmup);
    const int lag = lag_per_rank * rank;
    int forward = 0, weight = 0;
    for (; forward < warmup; ++forward) row.push_back(make_action(ActionKind::kForward, rank, forward));
    for (int i = 0; i < m; ++i) {
      const bool steady = forward < m;
      if (steady) row.push_back(make_action(ActionKind::kForward, rank, forward++));
      row.push_back(make_action(ActionKind::kInputGrad, rank, i));
      // In the cool-down one weight gradient follows every input gradient, whatever the lag: it fills the wait.
      const bool due = steady ? i - weight >= lag : weight <= i;
      if (due) row.push_back(make_action(ActionKind::kWeightGrad, rank, weight++));
    }
    for (; weight < m; ++weight) row.push_back(make_action(ActionKind::kWeightGrad, rank, weight));
  }
  return s;
}
}  // namespace

Schedule generate_zb_h1(const ScheduleSpec& spec) {
  return zero_bubble(spec, 1, 1);
}
Schedule generate_zb_h2(const ScheduleSpec& spec) {
  return zero_bubble(spec, 2, 2);
}

}  // namespace k3sim
