// The dataflow pass: each rank advances through its list until an input is missing; whoever supplies it wakes the rank.
// Every action is visited once, so the cost is linear in the number of actions.
// Source: engine-design section 11.1 (queue-drain execution).
#include <algorithm>
#include <deque>

#include "models/schedule/timeline.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr Time kMissing = Time::ps(-1);

class Placer {
 public:
  Placer(const Schedule& schedule, const ScheduleCosts& costs)
      : s_(schedule),
        costs_(costs),
        next_(schedule.actions.size(), 0),
        free_(schedule.actions.size()),
        queued_(schedule.actions.size(), true) {
    const std::size_t cells = static_cast<std::size_t>(s_.stages) * static_cast<std::size_t>(s_.microbatches);
    forward_end_.assign(cells, kMissing);
    backward_end_.assign(cells, kMissing);
    for (const auto& row : s_.actions)
      for (const Action& a : row) explicit_transfers_ = explicit_transfers_ || is_transfer(a.kind);
    if (explicit_transfers_)
      for (auto* times : {&forward_sent_, &forward_posted_, &backward_sent_, &backward_posted_})
        times->assign(cells, kMissing);
    out_.ranks.resize(s_.actions.size());
    for (std::size_t r = 0; r < s_.actions.size(); ++r) out_.ranks[r].resize(s_.actions[r].size());
  }

  PlacedActions run() {
    for (int r = 0; r < s_.ranks; ++r) work_.push_back(r);
    while (!work_.empty()) {
      const int rank = work_.front();
      work_.pop_front();
      queued_[static_cast<std::size_t>(rank)] = false;
      advance(static_cast<std::size_t>(rank));
    }
    for (std::size_t r = 0; r < s_.actions.size(); ++r) {
      const bool done = next_[r] == s_.actions[r].size();
      out_.blocked_at.push_back(done ? -1 : static_cast<int>(next_[r]));
      out_.complete = out_.complete && done;
    }
    return std::move(out_);
  }

 private:
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(s_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  int rank_of(int stage) const { return s_.rank_of_stage[static_cast<std::size_t>(stage)]; }
  bool crosses(int from, int to) const { return !costs_.free_transfers_on_rank || rank_of(from) != rank_of(to); }
  void wake(int stage) {
    const auto rank = static_cast<std::size_t>(rank_of(stage));
    if (queued_[rank]) return;
    queued_[rank] = true;
    work_.push_back(static_cast<int>(rank));
  }

  // When the data that `stage` needs from `from` has arrived; kMissing if it is not known yet.
  Time arrival(int from, int stage, int microbatch, const std::vector<Time>& end, const std::vector<Time>& sent,
               const std::vector<Time>& posted) const {
    const Time ready = end[cell(from, microbatch)];
    if (ready == kMissing || !crosses(from, stage)) return ready;
    const Time transfer = costs_.of(from).transfer;
    if (!explicit_transfers_) return ready + transfer;
    const Time send = sent[cell(from, microbatch)], recv = posted[cell(stage, microbatch)];
    return send == kMissing || recv == kMissing ? kMissing : std::max(send, recv) + transfer;
  }

  Time input_ready(const Action& a) const {
    switch (a.kind) {
      case ActionKind::kForward:
        if (s_.is_first(a.stage)) return Time();
        return arrival(a.stage - 1, a.stage, a.microbatch, forward_end_, forward_sent_, forward_posted_);
      case ActionKind::kInputGrad:
      case ActionKind::kBackward: {
        const Time own = forward_end_[cell(a.stage, a.microbatch)];
        if (own == kMissing || s_.is_last(a.stage)) return own;
        return arrival(a.stage + 1, a.stage, a.microbatch, backward_end_, backward_sent_, backward_posted_);
      }
      case ActionKind::kWeightGrad:
      case ActionKind::kSendBackward:
        return backward_end_[cell(a.stage, a.microbatch)];
      case ActionKind::kSendForward:
        return forward_end_[cell(a.stage, a.microbatch)];
      default:
        return Time();
    }
  }

  Time duration(const Action& a) const {
    if (!is_plain_compute(a.kind)) return Time();
    const StageTimes& t = costs_.of(a.stage);
    switch (a.kind) {
      case ActionKind::kForward:
        return t.forward;
      case ActionKind::kInputGrad:
        return t.input_grad;
      case ActionKind::kWeightGrad:
        return t.weight_grad;
      case ActionKind::kBackward:
        return t.input_grad + t.weight_grad;
      default:
        return Time();
    }
  }

  void record(const Action& a, Time start, Time end) {
    const int n = a.stage;
    switch (a.kind) {
      case ActionKind::kForward:
        forward_end_[cell(n, a.microbatch)] = end;
        if (!s_.is_last(n)) wake(n + 1);
        break;
      case ActionKind::kInputGrad:
      case ActionKind::kBackward:
        backward_end_[cell(n, a.microbatch)] = end;
        if (!s_.is_first(n)) wake(n - 1);
        break;
      case ActionKind::kSendForward:
        forward_sent_[cell(n, a.microbatch)] = start;
        wake(n + 1);
        break;
      case ActionKind::kSendBackward:
        backward_sent_[cell(n, a.microbatch)] = start;
        wake(n - 1);
        break;
      case ActionKind::kRecvForward:
        forward_posted_[cell(n, a.microbatch)] = start;
        break;
      case ActionKind::kRecvBackward:
        backward_posted_[cell(n, a.microbatch)] = start;
        break;
      default:
        break;
    }
  }

  void advance(std::size_t rank) {
    const auto& row = s_.actions[rank];
    for (; next_[rank] < row.size(); ++next_[rank]) {
      const Action& a = row[next_[rank]];
      Time ready, work;
      bool missing = false;
      for_each_part(a, [&](const Action& part) {
        const Time t = input_ready(part);
        missing = missing || t == kMissing;
        ready = std::max(ready, t);
        work += duration(part);
      });
      if (missing) return;
      if (a.kind == ActionKind::kOverlap) work = scale(work, costs_.overlap_factor);
      const Time start = std::max(free_[rank], ready), end = start + work;
      for_each_part(a, [&](const Action& part) { record(part, start, end); });
      out_.ranks[rank][next_[rank]] = {start, end};
      free_[rank] = end;
    }
  }

  const Schedule& s_;
  const ScheduleCosts& costs_;
  bool explicit_transfers_ = false;
  std::vector<std::size_t> next_;
  std::vector<Time> free_;
  std::vector<char> queued_;
  std::vector<Time> forward_end_, backward_end_;
  std::vector<Time> forward_sent_, forward_posted_, backward_sent_, backward_posted_;
  std::deque<int> work_;
  PlacedActions out_;
};
}  // namespace

PlacedActions place_actions(const Schedule& schedule, const ScheduleCosts& costs) {
  CS_CHECK(costs.stages.size() == 1 || static_cast<int>(costs.stages.size()) == schedule.stages,
           "{} cost entries for {} stages", costs.stages.size(), schedule.stages);
  return Placer(schedule, costs).run();
}

}  // namespace k3sim
