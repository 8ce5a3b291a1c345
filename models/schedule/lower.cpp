// Source: see lower.h.
#include "models/schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/error.h"

namespace k3sim {

namespace {
using Row = std::vector<Action>;

std::vector<int> next_stages(const Row& row, std::size_t from, int count) {
  std::vector<int> out;
  for (std::size_t i = from; i < row.size() && static_cast<int>(out.size()) < count; ++i)
    for_each_part(row[i], [&](const Action& part) {
      if (std::find(out.begin(), out.end(), part.stage) == out.end()) out.push_back(part.stage);
    });
  return out;
}

Row add_unshard(const Row& row, int lookahead) {
  Row out;
  std::set<int> active;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::vector<int> wanted = next_stages(row, i, lookahead);
    auto is_wanted = [&](int stage) { return std::find(wanted.begin(), wanted.end(), stage) != wanted.end(); };
    for (auto it = active.begin(); it != active.end();) {
      if (is_wanted(*it)) {
        ++it;
        continue;
      }
      out.push_back(make_action(ActionKind::kReshard, *it));
      it = active.erase(it);
    }
    for (int stage : wanted)
      if (active.insert(stage).second) out.push_back(make_action(ActionKind::kUnshard, stage));
    out.push_back(row[i]);
  }
  for (int stage : active) out.push_back(make_action(ActionKind::kReshard, stage));
  return out;
}

Row add_reduce(const Row& row, const Schedule& s) {
  Row out;
  std::vector<int> gradients(static_cast<std::size_t>(s.stages), 0);
  for (const Action& a : row) {
    out.push_back(a);
    for_each_part(a, [&](const Action& part) {
      if (yields_weight_grad(part.kind) &&
          ++gradients[static_cast<std::size_t>(part.stage)] == s.microbatches_per_chain())
        out.push_back(make_action(ActionKind::kReduceGrad, part.stage));
    });
  }
  return out;
}

class TransferInserter {
 public:
  explicit TransferInserter(const Schedule& schedule)
      : s_(schedule), out_(schedule), next_(schedule.actions.size(), 0) {
    const std::size_t cells = static_cast<std::size_t>(s_.stages) * static_cast<std::size_t>(s_.microbatches);
    forward_here_.assign(cells, 0);
    backward_here_.assign(cells, 0);
    for (auto& row : out_.actions) row.clear();
  }

  Schedule run() {
    bool left = true, progress = true;
    while (left) {
      if (!progress)
        throw ConfigError("the order deadlocks, so sends and receives cannot be placed (see schedule lint)");
      left = progress = false;
      for (std::size_t rank = 0; rank < s_.actions.size(); ++rank) {
        if (next_[rank] == s_.actions[rank].size()) continue;
        left = true;
        progress = step(rank) || progress;
      }
    }
    return std::move(out_);
  }

 private:
  std::size_t cell(int stage, int m) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(s_.microbatches) + static_cast<std::size_t>(m);
  }
  int rank_of(int stage) const { return s_.rank_of_stage[static_cast<std::size_t>(stage)]; }

  bool ready(const Action& part) const {
    if (part.kind == ActionKind::kForward)
      return s_.is_first(part.stage) || forward_here_[cell(part.stage, part.microbatch)];
    if (yields_input_grad(part.kind))
      return s_.is_last(part.stage) || backward_here_[cell(part.stage, part.microbatch)];
    return true;
  }

  bool step(std::size_t rank) {
    const Action& a = s_.actions[rank][next_[rank]];
    bool all_ready = true;
    for_each_part(a, [&](const Action& part) { all_ready = all_ready && ready(part); });
    if (!all_ready) return false;
    out_.actions[rank].push_back(a);
    for_each_part(a, [&](const Action& part) { hand_over(part); });
    ++next_[rank];
    return true;
  }

  void hand_over(const Action& part) {
    const bool forward = part.kind == ActionKind::kForward;
    if (!forward && !yields_input_grad(part.kind)) return;
    if (forward ? s_.is_last(part.stage) : s_.is_first(part.stage)) return;
    const int to = forward ? part.stage + 1 : part.stage - 1, m = part.microbatch;
    (forward ? forward_here_ : backward_here_)[cell(to, m)] = 1;
    if (rank_of(to) == rank_of(part.stage)) return;
    const ActionKind send = forward ? ActionKind::kSendForward : ActionKind::kSendBackward;
    const ActionKind recv = forward ? ActionKind::kRecvForward : ActionKind::kRecvBackward;
    out_.actions[static_cast<std::size_t>(rank_of(part.stage))].push_back(make_action(send, part.stage, m));
    out_.actions[static_cast<std::size_t>(rank_of(to))].push_back(make_action(recv, to, m));
  }

  const Schedule& s_;
  Schedule out_;
  std::vector<std::size_t> next_;
  std::vector<char> forward_here_, backward_here_;
};
}  // namespace

Schedule compute_only(const Schedule& schedule) {
  Schedule out = schedule;
  for (auto& row : out.actions) std::erase_if(row, [](const Action& a) { return !is_compute(a.kind); });
  return out;
}

Schedule lower_schedule(const Schedule& compute, const LowerOptions& options) {
  Schedule out = compute;
  for (auto& row : out.actions) {
    std::erase_if(row, [](const Action& a) { return a.kind == ActionKind::kIdle; });
    if (options.unshard) row = add_unshard(row, options.lookahead);
    if (options.reduce_grad) row = add_reduce(row, out);
  }
  return options.transfers ? TransferInserter(out).run() : out;
}

}  // namespace k3sim
