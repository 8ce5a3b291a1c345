// Seq-1F1B: 1F1B over pieces of sequences. Every micro-batch is cut into k slices along the sequence; slices run
// forward in order and backward in reverse order (a later slice attends to earlier ones), so a micro-batch's backward
// can start one stage after its last slice. Rank r runs p - r - 2 + k forwards before the first backward.
//   bubble (p - 1)(F + B + W) / k, activations (p - 1 + k) / k micro-batches on the first rank
// Holds for slices of equal time; the slices of causal attention are not equal unless they are cut so.
// Source: arXiv 2406.03488; sail-sg/zero-bubble-pipeline-parallelism (seq1f1b.py).
#include <algorithm>

#include "models/schedule/generators.h"

namespace k3sim {

Schedule generate_seq1f1b(const ScheduleSpec& spec) {
  if (spec.chunks != 1) refuse_schedule(spec, "chunks", "has one stage per rank");
  const int k = spec.slices;
  ScheduleSpec pieces = spec;
  pieces.microbatches = spec.microbatches * k;
  Schedule s = looped_schedule(pieces, 1);
  s.slices = k;
  const int total = s.microbatches;
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    auto backward = [&](int i) { row.push_back(make_action(ActionKind::kBackward, rank, i / k * k + k - 1 - i % k)); };
    const int warmup = std::min(total, s.ranks - rank - 2 + k + spec.extra_warmup);
    for (int i = 0; i < warmup; ++i) row.push_back(make_action(ActionKind::kForward, rank, i));
    for (int i = warmup; i < total; ++i)
      row.push_back(make_action(ActionKind::kForward, rank, i)), backward(i - warmup);
    for (int i = total - warmup; i < total; ++i) backward(i);
  }
  return s;
}

}  // namespace k3sim
