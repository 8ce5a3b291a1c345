// Transfers (matched, needed, in the same order on both sides) and the phases around compute: gathered parameters,
// reductions, offloaded activations.
// Source: torch/distributed/pipelining/schedules.py (_add_send_recv: what a boundary needs), engine-design
// section 11.1.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "models/schedule/lint.h"

namespace k3sim::lint {

namespace {
bool is_forward_transfer(ActionKind k) {
  return k == ActionKind::kSendForward || k == ActionKind::kRecvForward;
}

// The stage on the other side of a transfer, or -1.
int other_side(const Schedule& s, const Action& a) {
  const bool up = a.kind == ActionKind::kSendForward || a.kind == ActionKind::kRecvBackward;
  if (up) return s.is_last(a.stage) ? -1 : a.stage + 1;
  return s.is_first(a.stage) ? -1 : a.stage - 1;
}

struct Transfer {
  int from_stage, microbatch;
  bool forward;
  std::size_t rank, index;
  bool same(const Transfer& o) const {
    return from_stage == o.from_stage && microbatch == o.microbatch && forward == o.forward;
  }
  std::string text(bool send) const {
    const int stage = send ? from_stage : from_stage + (forward ? 1 : -1);
    return fmt::format("{}{}_{}{}", stage, send ? "SEND" : "RECV", forward ? 'F' : 'B', microbatch);
  }
};

using PairOfRanks = std::pair<int, int>;

class TransferChecker {
 public:
  TransferChecker(const Schedule& s, Findings& findings) : s_(s), findings_(findings) {}

  void visit(std::size_t rank, std::size_t index, const Action& a) {
    const int other = other_side(s_, a), first = s_.first_microbatch(a.stage);
    if (other < 0) return findings_.add(rank, index, to_string(a) + " has no stage on the other side");
    if (a.microbatch < first || a.microbatch >= first + s_.microbatches_per_chain())
      return findings_.add(rank, index, to_string(a) + " names a micro-batch that the stage does not have");
    const int here = static_cast<int>(rank), there = s_.rank_of_stage[static_cast<std::size_t>(other)];
    if (here == there)
      return findings_.add(rank, index,
                           fmt::format("{}: both stages are on rank {}, nothing is sent", to_string(a), here));
    const bool send = is_send(a.kind);
    if (!seen_.insert({static_cast<int>(a.kind), a.stage, a.microbatch}).second)
      return findings_.add(rank, index, to_string(a) + " is there twice");
    const Transfer t{send ? a.stage : other, a.microbatch, is_forward_transfer(a.kind), rank, index};
    (send ? sent_[{here, there}] : received_[{there, here}]).push_back(t);
    ++count_;
  }

  void match() {
    for (const auto& [ranks, sends] : sent_) compare(sends, received_[ranks]);
    for (const auto& [ranks, receives] : received_)
      if (sent_.find(ranks) == sent_.end()) compare({}, receives);
    std::size_t needed = 0;
    for (int stage = 0; stage + 1 < s_.stages; ++stage)
      if (!s_.is_last(stage) &&
          s_.rank_of_stage[static_cast<std::size_t>(stage)] != s_.rank_of_stage[static_cast<std::size_t>(stage) + 1])
        needed += 4 * static_cast<std::size_t>(s_.microbatches_per_chain());
    if (findings_.problems.empty() && count_ != needed) name_missing();
  }

 private:
  void compare(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) {
    for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      if (i < sends.size() && i < receives.size() && sends[i].same(receives[i])) continue;
      if (i < receives.size() && !contains(sends, receives[i]))
        return findings_.add(receives[i].rank, receives[i].index,
                             receives[i].text(false) + " has no matching " + receives[i].text(true));
      if (i < sends.size() && !contains(receives, sends[i]))
        return findings_.add(sends[i].rank, sends[i].index,
                             sends[i].text(true) + " has no matching " + sends[i].text(false));
      return findings_.add(
          receives[i].rank, receives[i].index,
          fmt::format("{} would receive what {} sends: ranks {} and {} list their transfers in different orders",
                      receives[i].text(false), sends[i].text(true), sends[i].rank, receives[i].rank));
    }
  }
  static bool contains(const std::vector<Transfer>& all, const Transfer& t) {
    return std::any_of(all.begin(), all.end(), [&](const Transfer& o) { return o.same(t); });
  }
  void name_missing() {
    for (std::size_t r = 0; r < s_.actions.size(); ++r)
      for (std::size_t i = 0; i < s_.actions[r].size(); ++i)
        for_each_part(s_.actions[r][i], [&](const Action& part) {
          const bool forward = part.kind == ActionKind::kForward;
          if (!forward && !yields_input_grad(part.kind)) return;
          const Action send =
              make_action(forward ? ActionKind::kSendForward : ActionKind::kSendBackward, part.stage, part.microbatch);
          const int other = other_side(s_, send);
          if (other < 0 || s_.rank_of_stage[static_cast<std::size_t>(other)] == static_cast<int>(r)) return;
          if (seen_.count({static_cast<int>(send.kind), send.stage, send.microbatch}) == 0)
            findings_.add(r, i, fmt::format("{} needs {} after it", to_string(part), to_string(send)));
        });
  }

  const Schedule& s_;
  Findings& findings_;
  std::set<std::tuple<int, int, int>> seen_;
  std::map<PairOfRanks, std::vector<Transfer>> sent_, received_;
  std::size_t count_ = 0;
};
}  // namespace

void check_transfers(const Schedule& s, Findings& findings) {
  bool any = false;
  for (const auto& row : s.actions)
    any = any || std::any_of(row.begin(), row.end(), [](const Action& a) { return is_transfer(a.kind); });
  if (!any) return;
  TransferChecker checker(s, findings);
  for (std::size_t r = 0; r < s.actions.size(); ++r)
    for (std::size_t i = 0; i < s.actions[r].size(); ++i)
      if (is_transfer(s.actions[r][i].kind)) checker.visit(r, i, s.actions[r][i]);
  checker.match();
}

namespace {
struct StagePhases {
  bool gathered = false;
  int gradients = 0, reductions = 0;
};

class PhaseChecker {
 public:
  PhaseChecker(const Schedule& s, Findings& findings)
      : s_(s), findings_(findings), stages_(static_cast<std::size_t>(s.stages)) {
    for (const auto& row : s.actions)
      for (const Action& a : row) {
        gathers_ = gathers_ || a.kind == ActionKind::kUnshard;
        reduces_ = reduces_ || a.kind == ActionKind::kReduceGrad;
      }
  }

  void visit(std::size_t rank, std::size_t index, const Action& part) {
    if (part.stage < 0) return;
    StagePhases& st = stages_[static_cast<std::size_t>(part.stage)];
    auto fail = [&](const char* what) { findings_.add(rank, index, to_string(part) + " " + what); };
    if (part.kind == ActionKind::kUnshard) {
      if (st.gathered) fail("gathers parameters that are there already");
      st.gathered = true;
    } else if (part.kind == ActionKind::kReshard) {
      if (!st.gathered) fail("frees parameters that are not gathered");
      st.gathered = false;
    } else if (part.kind == ActionKind::kReduceGrad) {
      if (st.gradients < s_.microbatches_per_chain()) fail("comes before the stage's last weight gradient");
      if (++st.reductions > 1) fail("reduces the stage a second time");
    } else if (is_plain_compute(part.kind)) {
      if (gathers_ && !st.gathered) fail("runs without gathered parameters");
      st.gradients += yields_weight_grad(part.kind) ? 1 : 0;
    }
    visit_offload(part, fail);
  }

  void finish() {
    if (!reduces_) return;
    for (int stage = 0; stage < s_.stages; ++stage)
      if (stages_[static_cast<std::size_t>(stage)].reductions == 0) {
        const auto rank = static_cast<std::size_t>(s_.rank_of_stage[static_cast<std::size_t>(stage)]);
        findings_.add(rank, s_.actions[rank].size(), fmt::format("the gradients of stage {} are never reduced", stage));
      }
  }

 private:
  template <class Fail>
  void visit_offload(const Action& part, Fail&& fail) {
    const std::pair<int, int> key{part.stage, part.microbatch};
    if (part.kind == ActionKind::kOffload && !away_.insert(key).second) fail("is away already");
    if (part.kind == ActionKind::kOnload && away_.erase(key) == 0) fail("brings back what is not away");
    if (yields_input_grad(part.kind) && away_.count(key) > 0) fail("needs an activation that is offloaded");
  }

  const Schedule& s_;
  Findings& findings_;
  std::vector<StagePhases> stages_;
  std::set<std::pair<int, int>> away_;
  bool gathers_ = false, reduces_ = false;
};
}  // namespace

void check_phases(const Schedule& s, Findings& findings) {
  PhaseChecker checker(s, findings);
  for (std::size_t r = 0; r < s.actions.size(); ++r)
    for (std::size_t i = 0; i < s.actions[r].size(); ++i)
      for_each_part(s.actions[r][i], [&](const Action& part) { checker.visit(r, i, part); });
  checker.finish();
}

}  // namespace k3sim::lint
