// Hanayo waves: w waves fold the model over the ranks w times down and up again (chunks = 2w per rank), so the turn of
// a wave stays on one rank and no parameters are doubled. The order comes from list scheduling at B = 2F: each rank
// prefers backwards (best for m = p), forwards or the oldest micro-batch (best for m > p) within p, or 5p/4,
// micro-batches of activations; the shortest is taken.
//   bubble for m = p and full backward 2F, in chunk times f: 4(p - 1) + 2(w - 1)(p - 2); 1F1B's is 6w(p - 1)
//   activations at most 5p/4 (p for m = p)
// Source: arXiv 2308.15762 (placement and the aim); the order is found here, the paper's own runtime searches likewise.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/schedule/generators.h"
#include "models/schedule/list_scheduler.h"

namespace k3sim {

Schedule generate_hanayo(const ScheduleSpec& spec) {
  const int chunks = spec.chunks;
  if (chunks % 2 != 0)
    refuse_schedule(spec, "chunks", fmt::format("needs two chunks per rank and wave, an even number, got {}", chunks));
  ListInput input{.skeleton = folded_schedule(spec, chunks), .times = {}, .limit = {}};
  input.times.assign(static_cast<std::size_t>(input.skeleton.stages), StageTimes{});
  const std::pair<Prefer, int> tries[] = {{Prefer::kBackward, 4}, {Prefer::kForward, 4}, {Prefer::kForward, 5},
                                          {Prefer::kOldest, 4},   {Prefer::kOldest, 5},  {Prefer::kBackward, 5}};
  ListResult best;
  for (const auto& [prefer, quarters] : tries) {
    input.limit.assign(static_cast<std::size_t>(spec.ranks), std::max(chunks, spec.ranks * chunks * quarters / 4));
    ListResult found = list_schedule(input, {.prefer = prefer, .split = false});
    if (best.schedule.stages == 0 || found.makespan < best.makespan) best = std::move(found);
  }
  return std::move(best.schedule);
}

}  // namespace k3sim
