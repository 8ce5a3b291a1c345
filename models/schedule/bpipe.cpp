// BPipe: 1F1B whose early ranks lend activations to their late partners (rank r and p - 1 - r), so that all hold the
// same. No rank keeps more than limit = ceil((p + 2) / 2) micro-batches: when a forward or a returning activation needs
// a place, the resident one whose backward is furthest away moves to the partner; it returns just before its backward.
//   bubble (p - 1)(F + B + W) as 1F1B, activations ceil((p + 2) / 2)
// Source: "BPipe: memory-balanced pipeline parallelism", ICML 2023; engine-design section 11.
#include <algorithm>
#include <set>

#include "models/schedule/generators.h"

namespace k3sim {

namespace {
Action move_activation(ActionKind kind, const Action& work, int microbatch, int partner) {
  Action a = make_action(kind, work.stage, microbatch);
  a.other_stage = static_cast<std::int16_t>(partner);
  return a;
}

std::vector<Action> balance(const std::vector<Action>& row, int limit, int partner) {
  std::vector<Action> out;
  out.reserve(row.size() * 2);
  std::set<int> resident;
  for (const Action& work : row) {
    const bool forward = work.kind == ActionKind::kForward;
    const bool away = !forward && resident.count(work.microbatch) == 0;
    if ((forward || away) && static_cast<int>(resident.size()) == limit) {
      const int furthest = *resident.rbegin();
      out.push_back(move_activation(ActionKind::kOffload, work, furthest, partner));
      resident.erase(furthest);
    }
    if (away) out.push_back(move_activation(ActionKind::kOnload, work, work.microbatch, partner));
    out.push_back(work);
    if (forward)
      resident.insert(work.microbatch);
    else
      resident.erase(work.microbatch);
  }
  return out;
}
}  // namespace

Schedule generate_bpipe(const ScheduleSpec& spec) {
  Schedule s = generate_1f1b(spec);
  const int limit = (s.ranks + 3) / 2;
  for (int rank = 0; rank < s.ranks / 2; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    row = balance(row, limit, s.ranks - 1 - rank);
  }
  return s;
}

}  // namespace k3sim
