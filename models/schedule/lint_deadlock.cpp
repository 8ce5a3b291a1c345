// Queue-drain execution: every rank runs its next action as soon as what it waits for has been executed. If all ranks
// wait, following "waits for" from rank to rank ends in a cycle (or at an action that is nowhere). Transfers, where
// there are any, block: a receive waits for its send, a compute action for its receive. Source:
// torch/distributed/pipelining/schedules.py (_simulate_comms_compute).
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "models/schedule/lint.h"

namespace k3sim::lint {

namespace {
// Kinds that others wait for; I and B count as one.
enum Token : std::size_t {
  kForwardDone,
  kBackwardDone,
  kForwardSent,
  kBackwardSent,
  kForwardHere,
  kBackwardHere,
  kTokens
};

struct Need {
  Token token;
  int stage;
};

class Machine {
 public:
  explicit Machine(const Schedule& s) : s_(s), next_(s.actions.size(), 0), queued_(s.actions.size(), 1) {
    const std::size_t cells = static_cast<std::size_t>(s.stages) * static_cast<std::size_t>(s.microbatches);
    for (auto& tokens : done_) tokens.assign(cells, 0);
    for (const auto& row : s.actions)
      transfers_ =
          transfers_ || std::any_of(row.begin(), row.end(), [](const Action& a) { return is_transfer(a.kind); });
  }

  Execution run() {
    for (std::size_t r = 0; r < next_.size(); ++r) work_.push_back(r);
    Execution out;
    while (!work_.empty()) {
      const std::size_t r = work_.front();
      work_.pop_front();
      queued_[r] = 0;
      while (next_[r] < s_.actions[r].size() && !blocker(s_.actions[r][next_[r]])) {
        for_each_part(s_.actions[r][next_[r]], [&](const Action& part) { complete(part); });
        ++next_[r];
        ++out.executed;
      }
    }
    out.cycle = find_cycle();
    out.next = next_;
    return out;
  }

  // The first thing that the action waits for.
  std::optional<std::pair<Need, int>> blocker(const Action& a) const {
    std::optional<std::pair<Need, int>> found;
    for_each_part(a, [&](const Action& part) {
      if (found) return;
      const std::optional<Need> need = need_of(part);
      if (need && !is_done(*need, part.microbatch)) found = {*need, part.microbatch};
    });
    return found;
  }

 private:
  std::size_t cell(int stage, int m) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(s_.microbatches) + static_cast<std::size_t>(m);
  }
  bool is_done(const Need& need, int m) const { return done_[need.token][cell(need.stage, m)] != 0; }
  bool crosses(int a, int b) const {
    return s_.rank_of_stage[static_cast<std::size_t>(a)] != s_.rank_of_stage[static_cast<std::size_t>(b)];
  }

  std::optional<Need> need_of(const Action& a) const {
    const int n = a.stage;
    switch (a.kind) {
      case ActionKind::kForward:
        if (s_.is_first(n)) return std::nullopt;
        return transfers_ && crosses(n, n - 1) ? Need{kForwardHere, n} : Need{kForwardDone, n - 1};
      case ActionKind::kInputGrad:
      case ActionKind::kBackward:
        if (s_.is_last(n)) return Need{kForwardDone, n};
        return transfers_ && crosses(n, n + 1) ? Need{kBackwardHere, n} : Need{kBackwardDone, n + 1};
      case ActionKind::kSendForward:
        return Need{kForwardDone, n};
      case ActionKind::kSendBackward:
        return Need{kBackwardDone, n};
      case ActionKind::kRecvForward:
        return Need{kForwardSent, n - 1};
      case ActionKind::kRecvBackward:
        return Need{kBackwardSent, n + 1};
      default:
        return std::nullopt;
    }
  }

  void complete(const Action& a) {
    const int n = a.stage;
    switch (a.kind) {
      case ActionKind::kForward:
        mark(kForwardDone, n, a.microbatch, s_.is_last(n) ? n : n + 1);
        break;
      case ActionKind::kInputGrad:
      case ActionKind::kBackward:
        mark(kBackwardDone, n, a.microbatch, s_.is_first(n) ? n : n - 1);
        break;
      case ActionKind::kSendForward:
        mark(kForwardSent, n, a.microbatch, n + 1);
        break;
      case ActionKind::kSendBackward:
        mark(kBackwardSent, n, a.microbatch, n - 1);
        break;
      case ActionKind::kRecvForward:
        mark(kForwardHere, n, a.microbatch, n);
        break;
      case ActionKind::kRecvBackward:
        mark(kBackwardHere, n, a.microbatch, n);
        break;
      default:
        break;
    }
  }
  void mark(Token token, int stage, int m, int wakes_stage) {
    done_[token][cell(stage, m)] = 1;
    const auto rank = static_cast<std::size_t>(s_.rank_of_stage[static_cast<std::size_t>(wakes_stage)]);
    if (queued_[rank]) return;
    queued_[rank] = 1;
    work_.push_back(rank);
  }

  std::vector<int> find_cycle() const {
    std::vector<int> path;
    std::vector<int> position(next_.size(), -1);
    int rank = 0;
    while (rank < s_.ranks &&
           next_[static_cast<std::size_t>(rank)] == s_.actions[static_cast<std::size_t>(rank)].size())
      ++rank;
    if (rank == s_.ranks) return path;
    while (position[static_cast<std::size_t>(rank)] < 0) {
      position[static_cast<std::size_t>(rank)] = static_cast<int>(path.size());
      path.push_back(rank);
      const auto r = static_cast<std::size_t>(rank);
      const auto wait = blocker(s_.actions[r][next_[r]]);
      rank = s_.rank_of_stage[static_cast<std::size_t>(wait->first.stage)];
      const auto to = static_cast<std::size_t>(rank);
      if (next_[to] == s_.actions[to].size()) return {static_cast<int>(r)};
    }
    path.erase(path.begin(), path.begin() + position[static_cast<std::size_t>(rank)]);
    return path;
  }

  const Schedule& s_;
  bool transfers_ = false;
  std::vector<std::size_t> next_;
  std::vector<char> queued_;
  std::vector<char> done_[kTokens];
  std::deque<std::size_t> work_;
};

bool supplies(const Action& a, const Need& need, int m) {
  bool found = false;
  for_each_part(a, [&](const Action& part) {
    if (part.stage != need.stage || part.microbatch != m) return;
    switch (need.token) {
      case kForwardDone:
        found = found || part.kind == ActionKind::kForward;
        break;
      case kBackwardDone:
        found = found || yields_input_grad(part.kind);
        break;
      case kForwardSent:
        found = found || part.kind == ActionKind::kSendForward;
        break;
      case kBackwardSent:
        found = found || part.kind == ActionKind::kSendBackward;
        break;
      case kForwardHere:
        found = found || part.kind == ActionKind::kRecvForward;
        break;
      default:
        found = found || part.kind == ActionKind::kRecvBackward;
        break;
    }
  });
  return found;
}
}  // namespace

Execution execute(const Schedule& schedule) {
  return Machine(schedule).run();
}

std::vector<std::string> explain_cycle(const Schedule& s, const Execution& execution) {
  Machine machine(s);
  // Re-run to the stuck state, so that the first unmet need of every rank is known.
  machine.run();
  std::vector<std::string> lines;
  for (int rank : execution.cycle) {
    const auto r = static_cast<std::size_t>(rank);
    const std::size_t at = execution.next[r];
    const Action& a = s.actions[r][at];
    const auto wait = machine.blocker(a);
    const auto home = static_cast<std::size_t>(s.rank_of_stage[static_cast<std::size_t>(wait->first.stage)]);
    const auto& row = s.actions[home];
    const auto supplier =
        std::find_if(row.begin(), row.end(), [&](const Action& o) { return supplies(o, wait->first, wait->second); });
    const std::string what = supplier == row.end() ? "something that is nowhere in the schedule" : to_string(*supplier);
    lines.push_back(fmt::format("rank {} at {} ({}) waits for {} on rank {} at {}", rank, at, to_string(a), what, home,
                                supplier - row.begin()));
  }
  return lines;
}

}  // namespace k3sim::lint
