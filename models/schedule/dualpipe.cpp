// DualPipe and DualPipeV: forwards of one direction (or arm of the V) overlapped with backwards of the other.
// Both follow the same eight steps on a "half rank" h of H; a is the arm that starts on this rank, b the other one:
//   1  (H-h-1)*2 x  F a              5  (H-h-1) x  B b, (F b | B a)
//   2  (h+1)     x  F a, F b         6  (h+1)   x  B b, B a    second half with the weight gradient put off
//   3  (H-h-1)   x  I b, W b, F b    7  (H-h-1) x  W, I a
//   4  (n-2H+h+1) x (F a | B b), (F b | B a)     8  (h+1)   x  W
// DualPipe: H = p/2, two copies of the model run in opposite directions, each on n = m/2 micro-batches; rank h and
// rank p-1-h are mirror images. DualPipeV: H = p, one model folded into a V, n = m. Defined, as by the authors, for
// n >= 2H (DualPipe: even p and m); others are refused.
//   bubble (H - 1)(F&B + B - 3W) for F = I (published); B = I + W the full backward, F&B the overlapped pair
//   bubble (H - 1)(F&B - 2W + F), or the published one less F if that is more, for other I >= W (derived)
//   activations p + 1, parameters twice (published)
// Source: deepseek-ai/DualPipe dualpipe/dualpipe.py, dualpipev.py and README; engine-design section 11.
//
// The published bubble is the idle time of the innermost rank (h = H - 1, most pairs) over the whole step; with F&B =
// F + B all ranks have the same work and any of them will do. Derivation, for B <= F&B: the longest path ends with the
// innermost rank's 2(n - H) - 1 pairs, H - 1 pairs outwards, a full backward, 2H - 1 input gradients through the model
// and a weight gradient. It begins with the H - 1 forwards that the innermost rank waits for and that rank's own
// 2H + 1 forwards and unpaired backward, or with the first micro-batch: 2H forwards, H - 1 input gradients, that
// backward. Less the rank's own work (2H + 1 forwards, 2H + 1 full backwards, the pairs) this leaves the two forms; at
// F = I the first is the published one and the longer.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "models/schedule/generators.h"

namespace k3sim {

namespace {
struct Arm {
  int stage;
  int next_forward;
  int next_backward;
};

class HalfRank {
 public:
  HalfRank(std::vector<Action>& row, Arm a, Arm b) : row_(row), a_(a), b_(b) {}

  void run(int half_ranks, int half, int microbatches) {
    const int outer = half_ranks - half - 1, inner = half + 1;
    for (int i = 0; i < 2 * outer; ++i) forward(a_);
    for (int i = 0; i < inner; ++i) forward(a_), forward(b_);
    for (int i = 0; i < outer; ++i) backward(b_, true), weight(), forward(b_);
    for (int i = 0; i < microbatches - 2 * half_ranks + inner; ++i) {
      // The middle rank leaves its first pair unpaired: overlapping it would only delay the neighbour.
      if (i == 0 && outer == 0)
        forward(a_), backward(b_, false);
      else
        pair(a_, b_);
      pair(b_, a_);
    }
    for (int i = 0; i < outer; ++i) backward(b_, false), pair(b_, a_);
    cool_down(outer, inner, half % 2 == 1);
  }

 private:
  void cool_down(int outer, int inner, bool odd) {
    bool put_off = false;
    for (int i = 0; i < inner; ++i) {
      put_off = put_off || (i == inner / 2 && odd);
      backward(b_, put_off);
      put_off = put_off || (i == inner / 2 && !odd);
      backward(a_, put_off);
    }
    for (int i = 0; i < outer; ++i) weight(), backward(a_, true);
    for (int i = 0; i < inner; ++i) weight();
  }
  void forward(Arm& arm) { row_.push_back(make_action(ActionKind::kForward, arm.stage, arm.next_forward++)); }
  void backward(Arm& arm, bool split) {
    const ActionKind kind = split ? ActionKind::kInputGrad : ActionKind::kBackward;
    if (split) waiting_.push_back(make_action(ActionKind::kWeightGrad, arm.stage, arm.next_backward));
    row_.push_back(make_action(kind, arm.stage, arm.next_backward++));
  }
  void weight() {
    if (waiting_.empty()) return;
    row_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  void pair(Arm& f, Arm& b) {
    row_.push_back(make_overlap(make_action(ActionKind::kForward, f.stage, f.next_forward++),
                                make_action(ActionKind::kBackward, b.stage, b.next_backward++)));
  }

  std::vector<Action>& row_;
  Arm a_, b_;
  std::deque<Action> waiting_;
};
}  // namespace

Schedule generate_dualpipe(const ScheduleSpec& spec) {
  const int p = spec.ranks, m = spec.microbatches;
  if (p % 2 != 0) refuse_schedule(spec, "ranks", fmt::format("needs an even number of ranks, got {}", p));
  if (m % 2 != 0 || m < 2 * p)
    refuse_schedule(
        spec, "microbatches",
        fmt::format("needs an even number of at least 2 x {} ranks = {} micro-batches, got {}", p, 2 * p, m));
  Schedule s = looped_schedule(spec, 2);
  s.chains = 2;
  for (int rank = 0; rank < p; ++rank) {
    s.rank_of_stage[static_cast<std::size_t>(p + rank)] = p - 1 - rank;
    const Arm down{.stage = rank, .next_forward = 0, .next_backward = 0};
    const Arm up{.stage = 2 * p - 1 - rank, .next_forward = m / 2, .next_backward = m / 2};
    const bool first_half = rank < p / 2;
    HalfRank program(s.actions[static_cast<std::size_t>(rank)], first_half ? down : up, first_half ? up : down);
    program.run(p / 2, std::min(rank, p - 1 - rank), m / 2);
  }
  return s;
}

Schedule generate_dualpipe_v(const ScheduleSpec& spec) {
  const int p = spec.ranks, m = spec.microbatches;
  if (m < 2 * p)
    refuse_schedule(spec, "microbatches",
                    fmt::format("needs at least as many micro-batches as stages ({}), got {}", 2 * p, m));
  Schedule s = folded_schedule(spec, 2);
  for (int rank = 0; rank < p; ++rank) {
    HalfRank program(s.actions[static_cast<std::size_t>(rank)], {rank, 0, 0}, {2 * p - 1 - rank, 0, 0});
    program.run(p, rank, m);
  }
  return s;
}

}  // namespace k3sim
