// ZB-V: two chunks per rank placed in a V, so that the rank of the first stage also holds the last one.
// Warm-up of rank r: 2(p - r) - 1 forwards of the first chunk, r pairs (second, first), p - r times (F I W) of the
// second chunk. Steady: F I W of the first chunk, F I W of the second. Cool-down: r pairs of input gradients, p - r
// times I W of the first chunk, then the weight gradients that are left.
//   m >= 2p - 1: bubble 0 for F = B = W (published), (p - 1)(B - W) for W <= F <= B (derived)
//   m <  2p - 1: bubble (2p - 1 - m) F/2 for F = B = W (derived, optimal)
//   activations p (2p chunks) on every rank (published)
// With m < 2p - 1 the surplus micro-batches are left out, as PyTorch does, and the weight gradients are placed anew.
// Source: arXiv 2401.10241 section 6; torch/distributed/pipelining/schedules.py (ScheduleZBVZeroBubble).
//
// Derivation, in chunk times: the longest path is 2p forwards through the V, p - 1 input gradients back to the turn,
// then the last rank without a pause (its 2p warm-up forwards are behind it, and 2p - 1 weight gradients remain after
// its last input gradient), p - 1 input gradients and one weight gradient: 2m(F + B + W) + 2(p - 1)(B - W).
// With m < 2p - 1 the first rank cannot start its second chunk before 2p - 1 forward times and has only m forwards to
// run until then: it idles (2p - 1 - m) F in any order, which is reached.
#include <algorithm>
#include <utility>

#include "models/schedule/generators.h"
#include "models/schedule/weight_filler.h"
#include "sim/base/check.h"

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
  if (s.microbatches == planned) return s;
  const StageTimes unit;
  const std::vector<StageTimes> times(static_cast<std::size_t>(s.stages), unit);
  const std::vector<int> limit(static_cast<std::size_t>(s.ranks), s.stages);
  FillResult filled =
      fill_weight_grads(without_weight_grads(s), times, limit, unit.forward * (planned - s.microbatches));
  CS_CHECK(filled.feasible, "the V holds more than its {} activations", s.stages);
  return std::move(filled.schedule);
}

}  // namespace k3sim
