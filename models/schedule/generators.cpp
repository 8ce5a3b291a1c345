// Stage placements and the refusal shared by all generators.
// Source: arXiv 2104.04473 (looped placement), arXiv 2405.15362 (V placement), arXiv 2308.15762 (waves).
#include "models/schedule/generators.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace k3sim {

namespace {
Schedule empty_schedule(const ScheduleSpec& spec, int stages) {
  Schedule s;
  s.name = spec.name;
  s.ranks = spec.ranks;
  s.stages = stages;
  s.microbatches = spec.microbatches;
  s.rank_of_stage.resize(static_cast<std::size_t>(stages));
  s.actions.resize(static_cast<std::size_t>(spec.ranks));
  for (auto& row : s.actions) row.reserve(static_cast<std::size_t>(stages / spec.ranks * spec.microbatches) * 3);
  return s;
}
}  // namespace

Schedule looped_schedule(const ScheduleSpec& spec, int chunks) {
  Schedule s = empty_schedule(spec, spec.ranks * chunks);
  for (int stage = 0; stage < s.stages; ++stage) s.rank_of_stage[static_cast<std::size_t>(stage)] = stage % spec.ranks;
  return s;
}

Schedule folded_schedule(const ScheduleSpec& spec, int chunks) {
  Schedule s = empty_schedule(spec, spec.ranks * chunks);
  for (int stage = 0; stage < s.stages; ++stage) {
    const int round = stage / spec.ranks, place = stage % spec.ranks;
    s.rank_of_stage[static_cast<std::size_t>(stage)] = round % 2 == 0 ? place : spec.ranks - 1 - place;
  }
  return s;
}

void refuse_schedule(const ScheduleSpec& spec, const std::string& key, const std::string& what) {
  throw ConfigError(fmt::format("schedule '{}' {}", spec.name, what), "schedule." + key);
}

}  // namespace k3sim
