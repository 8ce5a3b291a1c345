// Placement, counts and order within a row.
// Source: torch/distributed/pipelining/schedules.py (_validate_schedule); stricter: duplicates and mixed B with I or W
// are found too.
#include <fmt/format.h>

#include "models/schedule/lint.h"

namespace k3sim::lint {

namespace {
enum Seen : unsigned char { kSeenF = 1, kSeenI = 2, kSeenW = 4, kSeenB = 8 };

bool known_stage(const Schedule& s, int stage) {
  return stage >= 0 && stage < s.stages;
}

void check_stage_ranks(const Schedule& s, Findings& findings) {
  std::vector<int> first_rank(static_cast<std::size_t>(s.stages), -1);
  std::vector<char> reported(static_cast<std::size_t>(s.stages), 0);
  for (std::size_t r = 0; r < s.actions.size(); ++r) {
    bool any = false;
    for (std::size_t i = 0; i < s.actions[r].size(); ++i)
      for_each_part(s.actions[r][i], [&](const Action& part) {
        if (part.kind == ActionKind::kIdle) return;
        any = true;
        if (!known_stage(s, part.stage))
          return findings.add(r, i, fmt::format("{} names no stage of 0 ... {}", to_string(part), s.stages - 1));
        int& home = first_rank[static_cast<std::size_t>(part.stage)];
        char& told = reported[static_cast<std::size_t>(part.stage)];
        if (home < 0) home = static_cast<int>(r);
        if (home != static_cast<int>(r) && !told) {
          told = 1;
          findings.add(r, i, fmt::format("stage {} is on rank {} and on rank {}", part.stage, home, r));
        }
      });
    if (!any) findings.add(r, 0, fmt::format("rank {} does nothing", r));
  }
  for (int stage = 0; stage < s.stages; ++stage)
    if (first_rank[static_cast<std::size_t>(stage)] < 0)
      findings.problems.push_back({-1, -1, fmt::format("stage {} of 0 ... {} is on no rank", stage, s.stages - 1)});
}
}  // namespace

void check_placement(const Schedule& s, Findings& findings) {
  std::size_t compute = 0;
  for (const auto& row : s.actions)
    for (const Action& a : row)
      for_each_part(a, [&](const Action& part) { compute += is_plain_compute(part.kind) ? 1 : 0; });
  if (compute == 0) return findings.problems.push_back({-1, -1, "the schedule computes nothing"});
  const auto needed = static_cast<std::size_t>(s.stages) * static_cast<std::size_t>(s.microbatches_per_chain()) * 2;
  // Guards every later table of stages x micro-batches against a single huge number in a file.
  if (compute * 8 < needed)
    return findings.problems.push_back(
        {-1, -1,
         fmt::format("{} stages x {} micro-batches need {} forwards and backwards, found {}", s.stages,
                     s.microbatches_per_chain(), needed, compute)});
  check_stage_ranks(s, findings);
}

namespace {
class RowChecker {
 public:
  RowChecker(const Schedule& s, Findings& findings)
      : s_(s),
        findings_(findings),
        seen_(static_cast<std::size_t>(s.stages) * static_cast<std::size_t>(s.microbatches), 0) {}

  void visit(std::size_t rank, std::size_t index, const Action& part) {
    if (!is_plain_compute(part.kind)) return;
    const int first = s_.first_microbatch(part.stage);
    if (part.microbatch < first || part.microbatch >= first + s_.microbatches_per_chain())
      return findings_.add(rank, index,
                           fmt::format("{}: stage {} works on micro-batches {} ... {}", to_string(part), part.stage,
                                       first, first + s_.microbatches_per_chain() - 1));
    unsigned char& seen = at(part.stage, part.microbatch);
    const unsigned char bit = bit_of(part.kind);
    auto fail = [&](const char* what) { findings_.add(rank, index, fmt::format("{} {}", to_string(part), what)); };
    if (seen & bit) fail("is there twice");
    if (part.kind != ActionKind::kForward && !(seen & kSeenF)) fail("comes before its forward");
    if (part.kind == ActionKind::kBackward && (seen & (kSeenI | kSeenW)))
      fail("repeats a backward already done by I or W");
    if (part.kind == ActionKind::kInputGrad && (seen & kSeenB)) fail("repeats a backward already done by B");
    if (part.kind == ActionKind::kWeightGrad && !(seen & kSeenI)) fail("comes before its input gradient");
    if (s_.slices > 1) check_slice_order(part, fail);
    seen |= bit;
  }

  void missing(const std::vector<std::size_t>& row_sizes) {
    for (int stage = 0; stage < s_.stages; ++stage) {
      const auto rank = static_cast<std::size_t>(s_.rank_of_stage[static_cast<std::size_t>(stage)]);
      const int first = s_.first_microbatch(stage);
      for (int m = first; m < first + s_.microbatches_per_chain(); ++m) {
        const unsigned char seen = at(stage, m);
        if (!(seen & kSeenF)) findings_.add(rank, row_sizes[rank], fmt::format("{}F{} is missing", stage, m));
        if ((seen & kSeenI) && !(seen & kSeenW))
          findings_.add(rank, row_sizes[rank], fmt::format("{}W{} is missing", stage, m));
        if (!(seen & (kSeenI | kSeenB)))
          findings_.add(rank, row_sizes[rank],
                        fmt::format("the backward of stage {}, micro-batch {} is missing", stage, m));
      }
    }
  }

 private:
  unsigned char& at(int stage, int m) {
    return seen_[static_cast<std::size_t>(stage) * static_cast<std::size_t>(s_.microbatches) +
                 static_cast<std::size_t>(m)];
  }
  static unsigned char bit_of(ActionKind kind) {
    switch (kind) {
      case ActionKind::kForward:
        return kSeenF;
      case ActionKind::kInputGrad:
        return kSeenI;
      case ActionKind::kWeightGrad:
        return kSeenW;
      default:
        return kSeenB;
    }
  }
  // Slices of one sequence: forward upwards, backward downwards.
  template <class Fail>
  void check_slice_order(const Action& part, Fail&& fail) {
    const int slice = part.microbatch % s_.slices;
    if (part.kind == ActionKind::kForward && slice > 0 && !(at(part.stage, part.microbatch - 1) & kSeenF))
      fail("comes before the forward of the slice it attends to");
    if (yields_input_grad(part.kind) && slice + 1 < s_.slices &&
        !(at(part.stage, part.microbatch + 1) & (kSeenI | kSeenB)))
      fail("comes before the backward of a later slice");
  }

  const Schedule& s_;
  Findings& findings_;
  std::vector<unsigned char> seen_;
};
}  // namespace

void check_counts(const Schedule& s, Findings& findings) {
  RowChecker checker(s, findings);
  std::vector<std::size_t> sizes;
  for (std::size_t r = 0; r < s.actions.size(); ++r) {
    sizes.push_back(s.actions[r].size());
    for (std::size_t i = 0; i < s.actions[r].size(); ++i)
      for_each_part(s.actions[r][i], [&](const Action& part) { checker.visit(r, i, part); });
  }
  if (findings.problems.empty()) checker.missing(sizes);
}

}  // namespace k3sim::lint
