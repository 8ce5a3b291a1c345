// Dataflow execution of the F / I order with weight gradients inserted on the way.
// Source: see weight_filler.h.
#include "models/schedule/weight_filler.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace k3sim {

namespace {
constexpr Time kMissing = Time::ps(-1);

struct RankFill {
  std::size_t next = 0;
  std::deque<Action> pending;
  Time free, first, idle, work;
  int held = 0;
  bool started = false, queued = true;
};

class Filler {
 public:
  Filler(const Schedule& order, const std::vector<StageTimes>& times, const std::vector<int>& limit, Time budget)
      : in_(order), times_(times), limit_(limit), budget_(budget), ranks_(order.actions.size()) {
    const std::size_t cells = static_cast<std::size_t>(in_.stages) * static_cast<std::size_t>(in_.microbatches);
    forward_end_.assign(cells, kMissing);
    backward_end_.assign(cells, kMissing);
    out_.schedule = in_;
    for (auto& row : out_.schedule.actions) row.clear();
  }

  FillResult run() {
    std::deque<std::size_t>& work = work_;
    for (std::size_t r = 0; r < ranks_.size(); ++r) work.push_back(r);
    out_.feasible = true;
    while (!work.empty() && out_.feasible) {
      const std::size_t r = work.front();
      work.pop_front();
      ranks_[r].queued = false;
      advance(r);
    }
    for (std::size_t r = 0; r < ranks_.size() && out_.feasible; ++r) finish(r);
    return std::move(out_);
  }

 private:
  std::size_t cell(int stage, int m) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(in_.microbatches) + static_cast<std::size_t>(m);
  }
  const StageTimes& times(int stage) const { return times_[static_cast<std::size_t>(stage)]; }
  int rank_of(int stage) const { return in_.rank_of_stage[static_cast<std::size_t>(stage)]; }

  Time arrival(int from, int to, Time end) const {
    return end == kMissing || rank_of(from) == rank_of(to) ? end : end + times(from).transfer;
  }
  Time input_at(const Action& a) const {
    if (a.kind == ActionKind::kForward)
      return in_.is_first(a.stage) ? Time()
                                   : arrival(a.stage - 1, a.stage, forward_end_[cell(a.stage - 1, a.microbatch)]);
    const Time own = forward_end_[cell(a.stage, a.microbatch)];
    if (own == kMissing || in_.is_last(a.stage)) return own;
    return arrival(a.stage + 1, a.stage, backward_end_[cell(a.stage + 1, a.microbatch)]);
  }

  void wake(int stage) {
    const auto r = static_cast<std::size_t>(rank_of(stage));
    if (ranks_[r].queued) return;
    ranks_[r].queued = true;
    work_.push_back(r);
  }

  void run_weight(std::size_t r) {
    RankFill& rank = ranks_[r];
    out_.schedule.actions[r].push_back(rank.pending.front());
    rank.free += times(rank.pending.front().stage).weight_grad;
    rank.pending.pop_front();
    --rank.held;
  }

  // Weight gradients before an action whose input arrives at `ready`.
  void fill_wait(RankFill& rank, std::size_t r, Time ready) {
    while (!rank.pending.empty() && rank.free < ready) {
      const Time gap = ready - rank.free;
      const bool fits = times(rank.pending.front().stage).weight_grad <= gap;
      if (!fits && rank.idle + gap <= budget_) return;
      run_weight(r);
    }
  }

  bool make_room(RankFill& rank, std::size_t r) {
    while (rank.held >= limit_[r] && !rank.pending.empty()) run_weight(r);
    return rank.held < limit_[r];
  }

  void advance(std::size_t r) {
    RankFill& rank = ranks_[r];
    for (; rank.next < in_.actions[r].size(); ++rank.next) {
      const Action& a = in_.actions[r][rank.next];
      const bool forward = a.kind == ActionKind::kForward;
      const Time ready = input_at(a);
      if (ready == kMissing) return;
      if (rank.started) fill_wait(rank, r, ready);
      if (forward && !make_room(rank, r)) {
        out_.feasible = false;
        return;
      }
      const Time start = std::max(rank.free, ready);
      if (rank.started) rank.idle += start - rank.free;
      if (!rank.started) rank.first = start, rank.started = true;
      rank.free = start + (forward ? times(a.stage).forward : times(a.stage).input_grad);
      out_.schedule.actions[r].push_back(a);
      finished(a, rank);
    }
  }

  void finished(const Action& a, RankFill& rank) {
    if (a.kind == ActionKind::kForward) {
      ++rank.held;
      forward_end_[cell(a.stage, a.microbatch)] = rank.free;
      if (!in_.is_last(a.stage)) wake(a.stage + 1);
    } else {
      backward_end_[cell(a.stage, a.microbatch)] = rank.free;
      rank.pending.push_back(make_action(ActionKind::kWeightGrad, a.stage, a.microbatch));
      if (!in_.is_first(a.stage)) wake(a.stage - 1);
    }
  }

  void finish(std::size_t r) {
    RankFill& rank = ranks_[r];
    if (rank.next < in_.actions[r].size()) {
      out_.feasible = false;
      return;
    }
    while (!rank.pending.empty()) run_weight(r);
    out_.bubble = std::max(out_.bubble, rank.idle);
    out_.makespan = std::max(out_.makespan, rank.free);
  }

  const Schedule& in_;
  const std::vector<StageTimes>& times_;
  const std::vector<int>& limit_;
  Time budget_;
  std::vector<RankFill> ranks_;
  std::vector<Time> forward_end_, backward_end_;
  std::deque<std::size_t> work_;
  FillResult out_;
};
}  // namespace

FillResult fill_weight_grads(const Schedule& order, const std::vector<StageTimes>& times, const std::vector<int>& limit,
                             Time budget) {
  return Filler(order, times, limit, budget).run();
}

Schedule without_weight_grads(const Schedule& schedule) {
  Schedule out = schedule;
  for (auto& row : out.actions) {
    std::vector<Action> kept;
    for (const Action& a : row)
      for_each_part(a, [&](const Action& part) {
        if (part.kind == ActionKind::kForward) kept.push_back(part);
        if (yields_input_grad(part.kind))
          kept.push_back(make_action(ActionKind::kInputGrad, part.stage, part.microbatch));
      });
    row = std::move(kept);
  }
  return out;
}

}  // namespace k3sim
