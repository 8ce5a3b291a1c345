// GPipe: all forwards, then all backwards, in micro-batch order.
//   bubble = (p - 1)(F + B + W), activations m per rank
// Source: arXiv 1811.06965; torch/distributed/pipelining/schedules.py (ScheduleGPipe).
#include "models/schedule/generators.h"

namespace k3sim {

Schedule generate_gpipe(const ScheduleSpec& spec) {
  if (spec.chunks != 1) refuse_schedule(spec, "chunks", "has one stage per rank; use looped_bfs for several");
  Schedule s = looped_schedule(spec, 1);
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    for (int m = 0; m < s.microbatches; ++m) row.push_back(make_action(ActionKind::kForward, rank, m));
    for (int m = 0; m < s.microbatches; ++m) row.push_back(make_action(ActionKind::kBackward, rank, m));
  }
  return s;
}

}  // namespace k3sim
