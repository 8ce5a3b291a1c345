// V-Min and V-Half: a V of two chunks per rank whose repeating pattern keeps activations at a third or a half of
// 1F1B's. In steady state every rank repeats six unit slots per micro-batch: F a, F b, I b, I a at fixed offsets and
// two weight gradients in the slots left over. The start and the end of the pattern leave holes; every action there
// moves to its earliest free slot that keeps the activations within the pattern's own peak ("squeeze").
//   V-Min : bubble about 2/3 of 1F1B's: 4p - 5 chunk units (4p - 7 if 3 divides p); activations floor((p + 4) / 3)
//   V-Half: bubble about 1/2 of 1F1B's: 3p - 4 chunk units for odd p, 3p - 7 for even p >= 4; floor((p + 2) / 2)
// for F = B = W (a chunk unit is a sixth of a rank's work per micro-batch). Other times keep the order.
// Source: arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism (zbv_greedy.py: offsets; results compared with
// it).
#include <algorithm>
#include <array>

#include "models/schedule/generators.h"
#include "models/schedule/weight_filler.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr int kPeriod = 6;
enum Kind : std::size_t { kFa, kFb, kIb, kIa, kWb, kWa, kKinds };
using Offsets = std::array<int, 4>;

Offsets v_min_offsets(int p, int rank) {
  const int shift = p % 3 == 0 ? 2 : 0;
  return {rank, 2 * p - rank - 1, 2 * p + shift + rank, 4 * p + shift - rank - 1};
}

Offsets v_half_offsets(int p, int rank) {
  const int shift = p % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * p - rank - 2, 3 * p + shift + 2 * rank - 1, 6 * p + shift - rank - 2};
}

struct Event {
  int slot, rank;
  std::size_t kind;
  int microbatch;
  friend auto operator<=>(const Event&, const Event&) = default;
};

class Squeezer {
 public:
  Squeezer(const ScheduleSpec& spec, Offsets (*offsets)(int, int))
      : p_(spec.ranks),
        m_(spec.microbatches),
        slots_(static_cast<std::size_t>(kPeriod * (m_ + 2 * p_ + 2))),
        taken_(static_cast<std::size_t>(p_), std::vector<char>(slots_, 0)),
        held_(static_cast<std::size_t>(p_), std::vector<int>(slots_, 0)) {
    for (auto& kind : slot_) kind.assign(static_cast<std::size_t>(p_ * m_), 0);
    for (int rank = 0; rank < p_; ++rank) place_rank(rank, offsets(p_, rank));
    for (const auto& held : held_) cap_ = std::max(cap_, *std::max_element(held.begin(), held.end()));
  }
  int cap() const { return cap_; }

  // Moves the actions before the first last-stage gradient and after the last first-stage forward; only the latter when
  // `weights` is false, with the weight gradients out of the way (they are filled in afterwards).
  void squeeze(bool weights) {
    if (!weights) drop_weights();
    int phase = 0;
    for (const Event& e : events(weights)) {
      if (phase == 0 && e.kind == kIa && e.rank == 0) phase = 1;
      if (phase == 1) {
        if (e.kind == kFa && e.microbatch == m_ - 1) phase = 2;
      } else if (phase == 2 || weights) {
        move(e, earliest(e, weights));
      }
    }
  }

  // F and I of every rank in slot order.
  Schedule order(const ScheduleSpec& spec) const {
    Schedule s = folded_schedule(spec, 2);
    for (const Event& e : events(false)) {
      const int stage = e.kind == kFa || e.kind == kIa ? e.rank : 2 * p_ - 1 - e.rank;
      const ActionKind kind = e.kind <= kFb ? ActionKind::kForward : ActionKind::kInputGrad;
      s.actions[static_cast<std::size_t>(e.rank)].push_back(make_action(kind, stage, e.microbatch));
    }
    return s;
  }

 private:
  int& slot(std::size_t kind, int rank, int mb) { return slot_[kind][static_cast<std::size_t>(rank * m_ + mb)]; }
  int slot(std::size_t kind, int rank, int mb) const { return slot_[kind][static_cast<std::size_t>(rank * m_ + mb)]; }
  char& taken(int rank, int slot) { return taken_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)]; }
  int& held(int rank, int slot) { return held_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)]; }

  void place_rank(int rank, const Offsets& offsets) {
    std::vector<Event> inputs;
    for (std::size_t kind = kFa; kind <= kIa; ++kind)
      for (int mb = 0; mb < m_; ++mb) {
        const int at = slot(kind, rank, mb) = offsets[kind] + kPeriod * mb;
        CS_CHECK(!taken(rank, at), "rank {} slot {} used twice", rank, at);
        taken(rank, at) = 1;
        if (kind >= kIb) inputs.push_back({at, rank, kind, mb});
      }
    std::sort(inputs.begin(), inputs.end());
    int free = 0;
    for (const Event& input : inputs) {
      free = std::max(free, input.slot + 1);
      while (taken(rank, free)) ++free;
      taken(rank, free) = 1;
      slot(input.kind == kIb ? kWb : kWa, rank, input.microbatch) = free;
    }
    for (std::size_t kind : {kFa, kFb, kWb, kWa})
      for (int mb = 0; mb < m_; ++mb) held(rank, slot(kind, rank, mb)) += kind <= kFb ? 1 : -1;
    for (int t = 1; t < static_cast<int>(slots_); ++t) held(rank, t) += held(rank, t - 1);
  }

  void drop_weights() {
    for (std::size_t kind : {kWb, kWa})
      for (int rank = 0; rank < p_; ++rank)
        for (int mb = 0; mb < m_; ++mb) taken(rank, slot(kind, rank, mb)) = 0;
  }

  std::vector<Event> events(bool weights) const {
    std::vector<Event> out;
    for (std::size_t kind = kFa; kind < (weights ? kKinds : kWb); ++kind)
      for (int rank = 0; rank < p_; ++rank)
        for (int mb = 0; mb < m_; ++mb) out.push_back({slot(kind, rank, mb), rank, kind, mb});
    std::sort(out.begin(), out.end());
    return out;
  }

  int first_possible(const Event& e) const {
    const bool downwards = e.kind == kFa || e.kind == kIb, upwards = e.kind == kFb || e.kind == kIa;
    int after = -1;
    auto wait_for = [&](std::size_t kind, int rank, int mb) { after = std::max(after, slot(kind, rank, mb)); };
    if (downwards && e.rank > 0) wait_for(e.kind, e.rank - 1, e.microbatch);
    if (upwards && e.rank + 1 < p_) wait_for(e.kind, e.rank + 1, e.microbatch);
    if (e.kind >= kFb && e.kind <= kIa) wait_for(e.kind - 1, e.rank, e.microbatch);
    if (e.kind >= kWb) wait_for(e.kind == kWb ? kIb : kIa, e.rank, e.microbatch);
    if (e.microbatch > 0) wait_for(e.kind, e.rank, e.microbatch - 1);
    return after + 1;
  }

  int earliest(const Event& e, bool limited) {
    int lowest = first_possible(e);
    if (limited && e.kind <= kFb)
      for (int t = e.slot - 1; t >= lowest; --t)
        if (held(e.rank, t) + 1 > cap_) lowest = t + 1;
    for (int t = lowest; t < e.slot; ++t)
      if (!taken(e.rank, t)) return t;
    return e.slot;
  }

  void move(const Event& e, int to) {
    const int change = e.kind <= kFb ? 1 : e.kind >= kWb ? -1 : 0;
    for (int t = to; t < e.slot; ++t) held(e.rank, t) += change;
    taken(e.rank, e.slot) = 0;
    taken(e.rank, to) = 1;
    slot(e.kind, e.rank, e.microbatch) = to;
  }

  int p_, m_;
  std::size_t slots_;
  std::array<std::vector<int>, kKinds> slot_;
  std::vector<std::vector<char>> taken_;
  std::vector<std::vector<int>> held_;
  int cap_ = 0;
};

Schedule controllable(const ScheduleSpec& spec, Offsets (*offsets)(int, int)) {
  Squeezer squeezer(spec, offsets);
  const std::vector<StageTimes> unit(static_cast<std::size_t>(2 * spec.ranks));
  const std::vector<int> limit(static_cast<std::size_t>(spec.ranks), squeezer.cap());
  FillResult best = fill_weight_grads(squeezer.order(spec), unit, limit, Time());
  for (bool weights : {true, false}) {
    squeezer.squeeze(weights);
    FillResult tried = fill_weight_grads(squeezer.order(spec), unit, limit, Time());
    if (tried.feasible && (!best.feasible || tried.bubble < best.bubble)) best = std::move(tried);
  }
  CS_CHECK(best.feasible, "the pattern exceeds its own peak of {} activations", squeezer.cap());
  return std::move(best.schedule);
}
}  // namespace

Schedule generate_v_min(const ScheduleSpec& spec) {
  return controllable(spec, v_min_offsets);
}
Schedule generate_v_half(const ScheduleSpec& spec) {
  return controllable(spec, v_half_offsets);
}

}  // namespace k3sim
