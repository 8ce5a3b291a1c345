// The clock and the choice of a free rank. Ties: time, then rank, so that results are the same everywhere.
// Source: see list_scheduler.h.
#include "models/schedule/list_scheduler.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr Time kUnknown = Time::max();

struct Wake {
  Time at;
  int rank;
  bool operator>(const Wake& o) const { return at != o.at ? at > o.at : rank > o.rank; }
};

struct StageState {
  int next_forward = 0, next_backward = 0;
  std::vector<Time> forward_at, backward_at;  // arrival of the inputs, kUnknown until the producer has started
};

struct RankState {
  std::vector<int> stages;
  std::deque<Action> weights;
  Time free, first_start;
  bool started = false;
  int held = 0, remaining = 0;
};

struct Choice {
  ActionKind kind = ActionKind::kIdle;
  int stage = -1;
};

class Clock {
 public:
  Clock(const ListInput& input, const ListPolicy& policy) : in_(input), policy_(policy), out_(input.skeleton) {
    const auto m = static_cast<std::size_t>(out_.microbatches);
    stages_.resize(static_cast<std::size_t>(out_.stages));
    for (int s = 0; s < out_.stages; ++s) {
      stage(s).forward_at.assign(m, out_.is_first(s) ? Time() : kUnknown);
      stage(s).backward_at.assign(m, kUnknown);
    }
    ranks_.resize(static_cast<std::size_t>(out_.ranks));
    for (int r = 0; r < out_.ranks; ++r) {
      rank(r).stages = out_.stages_of_rank(r);
      rank(r).remaining = static_cast<int>(rank(r).stages.size() * m) * 3;
      out_.actions[static_cast<std::size_t>(r)].clear();
      wakes_.push({Time(), r});
    }
  }

  ListResult run() {
    while (!wakes_.empty()) {
      const Wake wake = wakes_.top();
      wakes_.pop();
      if (rank(wake.rank).free <= wake.at && rank(wake.rank).remaining > 0) decide(wake.rank, wake.at);
    }
    ListResult result;
    for (const RankState& r : ranks_) {
      CS_CHECK(r.remaining == 0, "list scheduler stuck with {} actions left", r.remaining);
      result.span = std::max(result.span, r.free - r.first_start);
      result.makespan = std::max(result.makespan, r.free);
    }
    result.schedule = std::move(out_);
    return result;
  }

 private:
  StageState& stage(int s) { return stages_[static_cast<std::size_t>(s)]; }
  RankState& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const StageTimes& times(int s) const { return in_.times[static_cast<std::size_t>(s)]; }

  // Later chunks of the rank each keep one place.
  bool admits(const RankState& r, std::size_t chunk) const {
    const int reserve = static_cast<int>(r.stages.size() - 1 - chunk);
    const auto limit = in_.limit[static_cast<std::size_t>(&r - ranks_.data())];
    return r.held + 1 + reserve <= limit;
  }
  Time next_forward_at(int s) {
    const StageState& st = stage(s);
    return st.next_forward < out_.microbatches ? st.forward_at[static_cast<std::size_t>(st.next_forward)] : kUnknown;
  }
  Time next_backward_at(int s) {
    const StageState& st = stage(s);
    return st.next_backward < out_.microbatches ? st.backward_at[static_cast<std::size_t>(st.next_backward)] : kUnknown;
  }

  Choice best_forward(const RankState& r, Time now) {
    for (std::size_t c = r.stages.size(); c-- > 0;)
      if (next_forward_at(r.stages[c]) <= now && admits(r, c)) return {ActionKind::kForward, r.stages[c]};
    return {};
  }
  Choice best_backward(const RankState& r, Time now) {
    Choice best;
    Time earliest = kUnknown;
    for (std::size_t i = r.stages.size(); i-- > 0;) {
      const Time at = next_backward_at(r.stages[i]);
      if (at > now || at >= earliest) continue;
      earliest = at;
      best = {ActionKind::kInputGrad, r.stages[i]};
    }
    return best;
  }

  // Earliest arrival after now of something that the rank could run.
  Time next_arrival(const RankState& r) {
    Time next = kUnknown;
    for (std::size_t c = 0; c < r.stages.size(); ++c) {
      next = std::min(next, next_backward_at(r.stages[c]));
      if (admits(r, c)) next = std::min(next, next_forward_at(r.stages[c]));
    }
    return next;
  }

  bool weight_fits(const RankState& r, Time now) {
    if (r.weights.empty()) return false;
    const bool more_to_come = std::any_of(r.stages.begin(), r.stages.end(),
                                          [&](int s) { return stage(s).next_backward < out_.microbatches; });
    if (!more_to_come) return true;
    const Time next = next_arrival(r), work = times(r.weights.front().stage).weight_grad;
    return next == kUnknown || now + work <= next + scale(work, policy_.patience);
  }

  void decide(int index, Time now) {
    RankState& r = rank(index);
    const Choice forward = best_forward(r, now), backward = best_backward(r, now);
    const bool both = forward.stage >= 0 && backward.stage >= 0;
    const bool take_forward = both ? policy_.prefer == Prefer::kForward : forward.stage >= 0;
    if (take_forward) return start(index, forward, now);
    if (backward.stage >= 0) return start(index, backward, now);
    if (weight_fits(r, now)) return start(index, {ActionKind::kWeightGrad, r.weights.front().stage}, now);
    // Waiting: an arrival already known wakes the rank by itself; a weight gradient that did not fit is kept for later.
  }

  void start(int index, const Choice& choice, Time now) {
    RankState& r = rank(index);
    StageState& st = stage(choice.stage);
    const StageTimes& t = times(choice.stage);
    if (!r.started) r.first_start = now, r.started = true;
    auto& row = out_.actions[static_cast<std::size_t>(index)];
    Time end = now;
    if (choice.kind == ActionKind::kForward) {
      end += t.forward;
      ++r.held;
      row.push_back(make_action(choice.kind, choice.stage, st.next_forward));
      forward_done(choice.stage, st.next_forward++, end);
    } else if (choice.kind == ActionKind::kWeightGrad) {
      end += t.weight_grad;
      --r.held;
      row.push_back(r.weights.front());
      r.weights.pop_front();
    } else {
      end += t.input_grad;
      row.push_back(make_action(choice.kind, choice.stage, st.next_backward));
      r.weights.push_back(make_action(ActionKind::kWeightGrad, choice.stage, st.next_backward));
      backward_done(choice.stage, st.next_backward++, end);
    }
    --r.remaining;
    r.free = end;
    wakes_.push({end, index});
  }

  Time arrival(int from, int to, Time end) const {
    const auto& place = out_.rank_of_stage;
    const bool local = place[static_cast<std::size_t>(from)] == place[static_cast<std::size_t>(to)];
    return local ? end : end + times(from).transfer;
  }
  void deliver(Time& slot, int from, int to, Time end) {
    slot = arrival(from, to, end);
    wakes_.push({slot, out_.rank_of_stage[static_cast<std::size_t>(to)]});
  }
  void forward_done(int s, int m, Time end) {
    const auto i = static_cast<std::size_t>(m);
    if (out_.is_last(s))
      deliver(stage(s).backward_at[i], s, s, end);
    else
      deliver(stage(s + 1).forward_at[i], s, s + 1, end);
  }
  void backward_done(int s, int m, Time end) {
    if (!out_.is_first(s)) deliver(stage(s - 1).backward_at[static_cast<std::size_t>(m)], s, s - 1, end);
  }

  const ListInput& in_;
  const ListPolicy& policy_;
  Schedule out_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
};
}  // namespace

ListResult list_schedule(const ListInput& input, const ListPolicy& policy) {
  return Clock(input, policy).run();
}

}  // namespace k3sim
