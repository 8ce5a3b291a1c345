// 1F1B (PipeDream-Flush): rank r runs p - 1 - r forwards, then one forward and one backward in turn, then the backwards
// that are left.
//   bubble = (p - 1)(F + B + W), activations min(m, p - r) on rank r (plus the extra warm-up)
// Source: arXiv 2006.09503; Megatron-LM megatron/core/pipeline_parallel/schedules.py
// (forward_backward_pipelining_without_interleaving).
#include <algorithm>

#include "models/schedule/generators.h"

namespace k3sim {

Schedule generate_1f1b(const ScheduleSpec& spec) {
  if (spec.chunks != 1) refuse_schedule(spec, "chunks", "has one stage per rank; use interleaved for several");
  Schedule s = looped_schedule(spec, 1);
  const int m = s.microbatches;
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    const int warmup = std::min(m, s.ranks - 1 - rank + spec.extra_warmup);
    for (int i = 0; i < warmup; ++i) row.push_back(make_action(ActionKind::kForward, rank, i));
    for (int i = warmup; i < m; ++i) {
      row.push_back(make_action(ActionKind::kForward, rank, i));
      row.push_back(make_action(ActionKind::kBackward, rank, i - warmup));
    }
    for (int i = m - warmup; i < m; ++i) row.push_back(make_action(ActionKind::kBackward, rank, i));
  }
  return s;
}

}  // namespace k3sim
