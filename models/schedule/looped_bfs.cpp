// Looped breadth-first: every chunk runs all micro-batches forward before the next chunk starts; backward in reverse.
// Needs one parameter gather per chunk and pass instead of one per group.
//   bubble = (p - 1)(F + B + W) / v for m >= p, activations m v chunks
// Source: arXiv 2211.05953; torch/distributed/pipelining/schedules.py (ScheduleLoopedBFS).
#include "models/schedule/generators.h"

namespace k3sim {

Schedule generate_looped_bfs(const ScheduleSpec& spec) {
  Schedule s = looped_schedule(spec, spec.chunks);
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    for (int stage = rank; stage < s.stages; stage += s.ranks)
      for (int m = 0; m < s.microbatches; ++m) row.push_back(make_action(ActionKind::kForward, stage, m));
    for (int stage = s.stages - s.ranks + rank; stage >= 0; stage -= s.ranks)
      for (int m = s.microbatches - 1; m >= 0; --m) row.push_back(make_action(ActionKind::kBackward, stage, m));
  }
  return s;
}

}  // namespace k3sim
