// V-Min and V-Half: a V of two chunks per rank whose repeating pattern keeps activations at a third or a half of
// 1F1B's. In steady state every rank repeats six unit slots per micro-batch: F a, F b, I b, I a at fixed offsets and
// two weight gradients in the slots left over. The start and the end of the pattern leave holes; every action there
// moves to its earliest free slot that keeps the activations within the pattern's own peak ("squeeze").
//   V-Min : bubble about 2/3 of 1F1B's, activations floor((p + 4) / 3)
//   V-Half: bubble about 1/2 of 1F1B's, activations floor((p + 2) / 2)
// for F = B = W; the bubbles are published as approximations, the activations exactly. Other times keep the order.
// Source: arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism (README; zbv_greedy.py: offsets, results).
//
// The exact bubbles are those of the authors' own scheduler, run for p = 2 ... 16 and up to 8p micro-batches: in chunk
// units (a sixth of a rank's work per micro-batch) V-Min 4p - 5 (4p - 7 if 3 divides p), V-Half 3p - 4 for odd p,
// 3p - 7 for even p >= 4 and 1 for p = 2; more where m is hardly above p. Ours are never larger. 4p - 5 is what the
// repeating pattern itself leaves: the first rank ends its last weight gradient at slot 6(m - 1) + 4p + 1.
#include <algorithm>
#include <array>
#include <optional>

#include "models/schedule/generators.h"
#include "models/schedule/timeline.h"
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
      const ActionKind kind = e.kind <= kFb ? ActionKind::kForward : ActionKind::kInputGrad;
      s.actions[static_cast<std::size_t>(e.rank)].push_back(make_action(kind, stage_of(e.kind, e.rank), e.microbatch));
    }
    return s;
  }

  // The same with the weight gradients in the first slots that are left over, of the outer half of the V last.
  Schedule order_with_weights(const ScheduleSpec& spec) const {
    Schedule s = folded_schedule(spec, 2);
    std::vector<std::vector<Event>> by_rank(static_cast<std::size_t>(p_));
    for (const Event& e : events(false)) by_rank[static_cast<std::size_t>(e.rank)].push_back(e);
    for (int rank = 0; rank < p_; ++rank) {
      auto& row = s.actions[static_cast<std::size_t>(rank)];
      std::array<int, 2> waiting{}, done{};  // inner and outer half
      const auto weight = [&] {
        const std::size_t half = waiting[0] > 0 ? 0 : 1;
        if (waiting[half] == 0) return;
        --waiting[half];
        row.push_back(make_action(ActionKind::kWeightGrad, stage_of(half == 0 ? kIb : kIa, rank), done[half]++));
      };
      int now = 0;
      for (const Event& e : by_rank[static_cast<std::size_t>(rank)]) {
        for (; now < e.slot; ++now) weight();
        now = e.slot + 1;
        const ActionKind kind = e.kind <= kFb ? ActionKind::kForward : ActionKind::kInputGrad;
        row.push_back(make_action(kind, stage_of(e.kind, rank), e.microbatch));
        if (e.kind >= kIb) ++waiting[e.kind - kIb];
      }
      while (waiting[0] + waiting[1] > 0) weight();
    }
    return s;
  }

  // As early as possible in the order of the slots, without holes that nobody needs.
  void start_early() {
    std::vector<int> free(static_cast<std::size_t>(p_), 0);
    for (const Event& e : events(true)) {
      int& next = free[static_cast<std::size_t>(e.rank)];
      const int to = std::max(first_possible(e), next);
      slot(e.kind, e.rank, e.microbatch) = to;
      next = to + 1;
    }
    for (auto& row : taken_) std::fill(row.begin(), row.end(), 0);
    for (const Event& e : events(true)) taken(e.rank, e.slot) = 1;
  }

  // Moves what comes after the last first-stage forward to its earliest free slot, weight gradients in idle slots.
  void squeeze_end() {
    drop_weights();
    int limit = 0, phase = 0;
    for (int rank = 0; rank < p_; ++rank) limit = std::max(limit, filled_peak(rank));
    for (const Event& e : events(false)) {
      if (phase == 0 && e.kind == kIa && e.rank == 0) phase = 1;
      if (phase < 2) {
        if (phase == 1 && e.kind == kFa && e.microbatch == m_ - 1) phase = 2;
        continue;
      }
      int& at = slot(e.kind, e.rank, e.microbatch);
      taken(e.rank, at) = 0;
      for (int t = first_possible(e); t < e.slot; ++t) {
        if (taken(e.rank, t)) continue;
        at = t;
        if (filled_peak(e.rank) <= limit) break;
        at = e.slot;
      }
      taken(e.rank, at) = 1;
    }
  }

 private:
  // Activations of a rank whose weight gradients run in the slots that are left over.
  int filled_peak(int rank) const {
    std::vector<signed char> at(slots_, -1);
    int last = 0;
    for (std::size_t kind = kFa; kind < kWb; ++kind)
      for (int mb = 0; mb < m_; ++mb) {
        at[static_cast<std::size_t>(slot(kind, rank, mb))] = static_cast<signed char>(kind);
        last = std::max(last, slot(kind, rank, mb));
      }
    int waiting = 0, now = 0, most = 0;
    for (int t = 0; t <= last; ++t) {
      const int kind = at[static_cast<std::size_t>(t)];
      if (kind < 0 && waiting > 0) --waiting, --now;
      if (kind >= 0 && kind <= static_cast<int>(kFb)) most = std::max(most, ++now);
      if (kind >= static_cast<int>(kIb)) ++waiting;
    }
    return most;
  }
  int stage_of(std::size_t kind, int rank) const { return kind == kFa || kind == kIa ? rank : 2 * p_ - 1 - rank; }
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
  std::optional<Squeezer> plain;
  for (bool weights : {true, false}) {
    squeezer.squeeze(weights);
    FillResult tried = fill_weight_grads(squeezer.order(spec), unit, limit, Time());
    if (tried.feasible && (!best.feasible || tried.bubble < best.bubble)) best = std::move(tried);
    if (weights && spec.microbatches < 2 * spec.ranks) plain = squeezer;
  }
  CS_CHECK(best.feasible, "the pattern exceeds its own peak of {} activations", squeezer.cap());
  if (!plain) return std::move(best.schedule);
  // With hardly more micro-batches than ranks the order of the paper's scheduler may be shorter.
  plain->start_early();
  plain->squeeze_end();
  FillResult tried = fill_weight_grads(plain->order(spec), unit, limit, Time());
  if (tried.feasible && tried.bubble < best.bubble) best = std::move(tried);
  Schedule theirs = plain->order_with_weights(spec);
  const Timeline t = time_schedule(theirs, {.stages = unit});
  const bool better = t.complete && t.bubble() < best.bubble && t.peak_activations() <= squeezer.cap();
  return better ? std::move(theirs) : std::move(best.schedule);
}
}  // namespace

Schedule generate_v_min(const ScheduleSpec& spec) {
  return controllable(spec, v_min_offsets);
}
Schedule generate_v_half(const ScheduleSpec& spec) {
  return controllable(spec, v_half_offsets);
}

}  // namespace k3sim
