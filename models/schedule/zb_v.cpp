// ZB-V: two chunks per rank placed in a V, so that the rank of the first stage also holds the last one.
// Warm-up of rank r: 2(p - r) - 1 forwards of the first chunk, r pairs (second, first), p - r times (F I W) of the
// second chunk. Steady: F I W of the first chunk, F I W of the second. Cool-down: r pairs of input gradients, p - r
// times I W of the first chunk, then the weight gradients that are left.
//   bubble 0 when F = B = W and m >= 2p - 1, activations p (2p chunks) on every rank
// With fewer micro-batches the surplus ones are left out, as PyTorch does; then the bubble is not zero.
// Source: arXiv 2401.10241 section 6; torch/distributed/pipelining/schedules.py (ScheduleZBVZeroBubble).
#include <algorithm>

#include "models/schedule/generators.h"

namespace k3sim {

namespace {
// Counts the micro-batches of one chunk per kind; actions beyond the real micro-batches are dropped.
struct ChunkCounter {
  std::vector<Action>& row;
  int stage;
  int limit;
  int forward = 0, input = 0, weight = 0;

  void emit(ActionKind kind, int microbatch) const {
    if (microbatch < limit) row.push_back(make_action(kind, stage, microbatch));
  }
  void f() { emit(ActionKind::kForward, forward++); }
  void i() { emit(ActionKind::kInputGrad, input++); }
  void w() { emit(ActionKind::kWeightGrad, weight++); }
  void iw() { i(), w(); }
};

void zb_v_rank(int ranks, int rank, int planned, ChunkCounter& down, ChunkCounter& up) {
  for (int k = 0; k < 2 * (ranks - rank) - 1; ++k) down.f();
  for (int k = 0; k < rank; ++k) up.f(), down.f();
  for (int k = 0; k < ranks - rank; ++k) up.f(), up.iw();
  while (up.forward < down.forward || down.forward < planned) {
    if (down.forward < planned) down.f();
    down.iw();
    up.f();
    up.iw();
  }
  for (int k = 0; k < rank; ++k) down.i(), up.i();
  for (int k = 0; k < ranks - rank; ++k) down.iw();
  while (up.weight < up.input) up.w();
  while (down.weight < down.input) down.w();
}
}  // namespace

Schedule generate_zb_v(const ScheduleSpec& spec) {
  Schedule s = folded_schedule(spec, 2);
  const int planned = std::max(2 * s.ranks - 1, s.microbatches);
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    ChunkCounter down{.row = row, .stage = rank, .limit = s.microbatches};
    ChunkCounter up{.row = row, .stage = s.stages - 1 - rank, .limit = s.microbatches};
    zb_v_rank(s.ranks, rank, planned, down, up);
  }
  return s;
}

}  // namespace k3sim
