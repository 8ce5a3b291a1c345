// Interleaved 1F1B, in Megatron's exact order. Stage of (chunk c, rank r) = c p + r.
//   bubble = (p - 1)(F + B + W) / v;  activations (chunks) of rank r: min(m v, warm-up + 1), which for r = 0 and group
//   = p is (p - 1)2 + (v - 1)p + 1, that is about p(1 + (p - 1)/(p v)) micro-batches
// The micro-batches are taken in groups of p, or a few more when p does not divide m; fewer than p make one group. A
// group size that is asked for follows Megatron's rule: a last incomplete group must hold at least p. v = 1 is plain
// 1F1B (Megatron takes the non-interleaved path there). Source: arXiv 2104.04473; Megatron-LM
// megatron/core/pipeline_parallel/schedules.py (forward_backward_pipelining_with_interleaving, get_schedule_table,
// get_pp_rank_microbatches).
#include "models/schedule/interleaved.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/schedule/generators.h"

namespace k3sim {

std::vector<ChunkStep> interleaved_table(const std::vector<int>& groups, int chunks) {
  std::vector<ChunkStep> table;
  int first = 0;
  for (int group : groups) {
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = first; m < first + group; ++m) table.push_back({chunk, m});
    first += group;
  }
  return table;
}

int interleaved_warmup(const ScheduleSpec& spec, int rank, int group) {
  const int total = spec.microbatches * spec.chunks;
  return std::min(total, 2 * (spec.ranks - 1 - rank) + (spec.chunks - 1) * group + spec.extra_warmup);
}

std::vector<int> interleaved_groups(const ScheduleSpec& spec) {
  const int p = spec.ranks, m = spec.microbatches, group = spec.group_size;
  std::vector<int> groups;
  if (group == 0) {
    const int rounds = std::max(1, m / p);
    for (int i = 0; i < rounds; ++i) groups.push_back(m / rounds + (i < m % rounds ? 1 : 0));
    return groups;
  }
  if (group < p || group > m)
    refuse_schedule(spec, "group_size",
                    fmt::format("needs ranks <= group size <= micro-batches, got {} <= {} <= {}", p, group, m));
  const int rest = m % group;
  if (rest > 0 && rest < p)
    refuse_schedule(spec, "microbatches",
                    fmt::format("cannot group {} micro-batches by {}: the last group holds {}, fewer than the {} ranks",
                                m, group, rest, p));
  groups.assign(static_cast<std::size_t>(m / group), group);
  if (rest > 0) groups.push_back(rest);
  return groups;
}

Schedule generate_interleaved(const ScheduleSpec& spec) {
  if (spec.chunks == 1) return generate_1f1b(spec);
  const std::vector<int> groups = interleaved_groups(spec);
  const int v = spec.chunks;
  Schedule s = looped_schedule(spec, v);
  const std::vector<ChunkStep> table = interleaved_table(groups, v);
  const int total = static_cast<int>(table.size());
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    auto forward = [&](int i) {
      const ChunkStep& t = table[static_cast<std::size_t>(i)];
      row.push_back(make_action(ActionKind::kForward, t.chunk * s.ranks + rank, t.microbatch));
    };
    auto backward = [&](int i) {
      const ChunkStep& t = table[static_cast<std::size_t>(i)];
      row.push_back(make_action(ActionKind::kBackward, (v - 1 - t.chunk) * s.ranks + rank, t.microbatch));
    };
    const int warmup = interleaved_warmup(spec, rank, groups.front());
    for (int i = 0; i < warmup; ++i) forward(i);
    for (int i = warmup; i < total; ++i) forward(i), backward(i - warmup);
    for (int i = total - warmup; i < total; ++i) backward(i);
  }
  return s;
}

}  // namespace k3sim
