// Hanayo waves: w waves fold the model over the ranks w times down and up again (v = 2w chunks per rank), so the turn
// of a wave stays on one rank and no parameters are doubled. The micro-batches go in groups of p (a few more where p
// does not divide m), two chunk times apart, so that those going up fill the gaps between those going down: stage s of
// the j-th micro-batch of a group has its place at s + 2j, one wave after the other; backwards likewise from the other
// end of the model. Every rank runs its forwards and its backwards in the order of these places. Which of the two
// comes next is settled on a clock with F = 1, B = 2: what is there, by turns if both are, holding at most one group.
//   bubble 2(p - 1)(B + W)/v for m > p, and for m = p if B + W >= 2F (derived, optimal; one wave, m = p: Chimera's)
//   activations p micro-batches for one wave or p | m; else p v + (v - 2)(g - p) chunks, g the largest group
// Source: arXiv 2308.15762 (placement, the aim); arXiv 2107.06925 (Chimera); the order and the form are ours.
//
// Derivation, in chunk times f and b = B + W >= f: the last rank holds at most p v chunks, so it can run p v forwards
// before its first backward, which cannot start there before all p v stages went forward and p - 1 came back, at
// p v f + (p - 1)b. All else that the rank has to do follows, and after its last backward p - 1 backwards remain to
// the end of the step: it takes at least m v (f + b) + 2(p - 1)b. The order above takes just that (property test). At
// m = p and b < 2f it takes up to 2(p - 1)(2f - b) more, because it is settled at b = 2f.
// Chimera publishes (D - 2)/(3N/2 + D - 2) of the step for D stages, N micro-batches and b = 2f; the Hanayo paper
// turns its two copies into one wave, D = N = 2p. The paper's own form for more waves was not at hand: none within
// that memory can be less than the bound.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "models/schedule/generators.h"
#include "models/schedule/interleaved.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr int kForwardTime = 1, kBackwardTime = 2;  // the ratio that the paper assumes
constexpr int kNever = -1;

struct Work {
  int place, stage, microbatch;
  friend auto operator<=>(const Work&, const Work&) = default;
};

struct WaveRank {
  std::vector<Work> forwards, backwards;
  std::size_t next_forward = 0, next_backward = 0;
  int free = 0, held = 0;
  bool backward_last = false;
};

class WaveClock {
 public:
  WaveClock(Schedule skeleton, const std::vector<int>& groups)
      : out_(std::move(skeleton)), ranks_(static_cast<std::size_t>(out_.ranks)) {
    const int waves = out_.stages / (2 * out_.ranks);
    const auto cells = static_cast<std::size_t>(out_.stages) * static_cast<std::size_t>(out_.microbatches);
    forward_end_.assign(cells, kNever);
    backward_end_.assign(cells, kNever);
    const int largest = *std::max_element(groups.begin(), groups.end());
    limit_ = out_.stages + 2 * (waves - 1) * std::max(0, largest - out_.ranks);
    int base = 0, first = 0;
    for (int group : groups) {
      const int wave_length = 2 * std::max(group, out_.ranks);
      for (int j = 0; j < group; ++j) add(first + j, base + 2 * j, wave_length);
      base += waves * wave_length;
      first += group;
    }
    for (WaveRank& r : ranks_) {
      std::sort(r.forwards.begin(), r.forwards.end());
      std::sort(r.backwards.begin(), r.backwards.end());
    }
  }

  Schedule run() {
    for (int rank = 0; rank < out_.ranks; ++rank) wakes_.push({0, rank});
    while (!wakes_.empty()) {
      const auto [now, rank] = wakes_.top();
      wakes_.pop();
      if (ranks_[static_cast<std::size_t>(rank)].free <= now) decide(rank, now);
    }
    for (const WaveRank& r : ranks_)
      CS_CHECK(r.next_backward == r.backwards.size(), "wave order stuck after {} backwards", r.next_backward);
    return std::move(out_);
  }

 private:
  void add(int microbatch, int base, int wave_length) {
    for (int stage = 0; stage < out_.stages; ++stage) {
      WaveRank& r = ranks_[static_cast<std::size_t>(out_.rank_of_stage[static_cast<std::size_t>(stage)])];
      const auto place = [&](int s) { return base + s / (2 * out_.ranks) * wave_length + s % (2 * out_.ranks); };
      r.forwards.push_back({place(stage), stage, microbatch});
      r.backwards.push_back({place(out_.stages - 1 - stage), stage, microbatch});
    }
  }
  int& end(std::vector<int>& ends, int stage, int microbatch) const {
    return ends[static_cast<std::size_t>(stage) * static_cast<std::size_t>(out_.microbatches) +
                static_cast<std::size_t>(microbatch)];
  }
  static bool there(int ready, int now) { return ready != kNever && ready <= now; }

  void decide(int rank, int now) {
    WaveRank& r = ranks_[static_cast<std::size_t>(rank)];
    bool forward = false, backward = false;
    if (r.next_forward < r.forwards.size() && r.held < limit_) {
      const Work& w = r.forwards[r.next_forward];
      forward = out_.is_first(w.stage) || there(end(forward_end_, w.stage - 1, w.microbatch), now);
    }
    if (r.next_backward < r.backwards.size()) {
      const Work& w = r.backwards[r.next_backward];
      backward = out_.is_last(w.stage) ? there(end(forward_end_, w.stage, w.microbatch), now)
                                       : there(end(backward_end_, w.stage + 1, w.microbatch), now);
    }
    if (backward && !(forward && r.backward_last))
      start(rank, now, ActionKind::kBackward, r.backwards[r.next_backward++]);
    else if (forward)
      start(rank, now, ActionKind::kForward, r.forwards[r.next_forward++]);
  }

  void start(int rank, int now, ActionKind kind, const Work& w) {
    WaveRank& r = ranks_[static_cast<std::size_t>(rank)];
    const bool backward = kind == ActionKind::kBackward;
    r.backward_last = backward;
    r.held += backward ? -1 : 1;
    r.free = end(backward ? backward_end_ : forward_end_, w.stage, w.microbatch) =
        now + (backward ? kBackwardTime : kForwardTime);
    out_.actions[static_cast<std::size_t>(rank)].push_back(make_action(kind, w.stage, w.microbatch));
    wakes_.push({r.free, rank});
    const int next = w.stage + (backward ? -1 : 1);
    if (next >= 0 && next < out_.stages) wakes_.push({r.free, out_.rank_of_stage[static_cast<std::size_t>(next)]});
  }

  Schedule out_;
  std::vector<WaveRank> ranks_;
  std::vector<int> forward_end_, backward_end_;
  int limit_ = 0;
  std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> wakes_;
};
}  // namespace

Schedule generate_hanayo(const ScheduleSpec& spec) {
  if (spec.chunks % 2 != 0)
    refuse_schedule(spec, "chunks",
                    fmt::format("needs two chunks per rank and wave, an even number, got {}", spec.chunks));
  return WaveClock(folded_schedule(spec, spec.chunks), interleaved_groups(spec)).run();
}

}  // namespace k3sim
