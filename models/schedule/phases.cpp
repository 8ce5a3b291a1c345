// Source: see phases.h.
#include "models/schedule/phases.h"

#include <algorithm>
#include <map>
#include <utility>

namespace k3sim {

namespace {
using Row = std::vector<Action>;

// Actions to insert, by the position in the row that they stand in front of.
using Insertions = std::multimap<std::size_t, Action>;

Row merged(const Row& row, const Insertions& insertions) {
  Row out;
  out.reserve(row.size() + insertions.size());
  auto next = insertions.begin();
  for (std::size_t i = 0; i <= row.size(); ++i) {
    for (; next != insertions.end() && next->first == i; ++next) out.push_back(next->second);
    if (i < row.size()) out.push_back(row[i]);
  }
  return out;
}

Action moved(ActionKind kind, const Action& work, int peer) {
  Action a = make_action(kind, work.stage, work.microbatch);
  a.other_stage = static_cast<std::int16_t>(peer);
  return a;
}
}  // namespace

Schedule with_offload(const Schedule& schedule, const OffloadOptions& options) {
  Schedule out = schedule;
  for (std::size_t r = 0; r < out.actions.size(); ++r) {
    const Row& row = schedule.actions[r];
    const int mirror = schedule.ranks - 1 - static_cast<int>(r);
    const bool lends = static_cast<int>(r) < mirror;
    if (options.even_ranks && !lends) continue;
    std::map<std::pair<int, int>, std::size_t> forward_at;
    Insertions insertions;
    for (std::size_t i = 0; i < row.size(); ++i)
      for_each_part(row[i], [&](const Action& part) {
        const std::pair<int, int> key{part.stage, part.microbatch};
        if (part.kind == ActionKind::kForward) forward_at[key] = i;
        if (!yields_input_grad(part.kind)) return;
        const std::size_t left = forward_at[key] + 1, back = i - std::min(i, static_cast<std::size_t>(options.lead));
        if (i - left < static_cast<std::size_t>(options.keep) || back < left) return;
        const int peer = options.even_ranks ? mirror : -1;
        insertions.emplace(left, moved(ActionKind::kOffload, part, peer));
        insertions.emplace(back, moved(ActionKind::kOnload, part, peer));
      });
    out.actions[r] = merged(row, insertions);
  }
  return out;
}

Schedule with_vision(const Schedule& schedule, int lead) {
  Schedule out = schedule;
  for (std::size_t r = 0; r < out.actions.size(); ++r) {
    const Row& row = schedule.actions[r];
    Insertions insertions;
    for (std::size_t i = 0; i < row.size(); ++i)
      for_each_part(row[i], [&](const Action& part) {
        if (part.stage < 0 || !schedule.is_first(part.stage)) return;
        if (part.kind == ActionKind::kForward)
          insertions.emplace(i - std::min(i, static_cast<std::size_t>(lead)),
                             make_action(ActionKind::kVisionForward, part.stage, part.microbatch));
        if (yields_input_grad(part.kind))
          insertions.emplace(i + 1, make_action(ActionKind::kVisionBackward, part.stage, part.microbatch));
      });
    out.actions[r] = merged(row, insertions);
  }
  return out;
}

}  // namespace k3sim
