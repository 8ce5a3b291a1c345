// Lower bounds that no schedule, network or allocator of the simulation undercuts (property test).
//   time:   max over ranks r of  head(r) + m work(r) + drain(r)  and of every communication lane and the copy engine
//           head: forwards of the stages before the rank's first one; drain: their input gradients after its last one
//           work: its own passes; where weight gradients are apart, also m (all passes) without the drain
//   memory: weights, gradients and optimizer states of a rank + the activations that its warm-up must hold
// Left out, because a schedule may hide them: pipeline transfers, gradient reduction, gathers, launches, the optimizer.
// Source: engine-design section 16 (steps 2 and 3); Megatron-LM warm-up counts (models/schedule).
#pragma once

#include <map>
#include <mutex>
#include <tuple>

#include "tools/planner/cost_tables.h"

namespace k3sim {

// How a schedule lays stages on ranks; the same for every number of micro-batches.
struct StageMap {
  int ranks = 1, chains = 1;
  std::vector<int> rank_of_stage;
  bool splits = false;       // weight gradients may come later than input gradients
  bool interleaves = false;  // forward and backward passes of one rank run merged
  bool sliced = false;       // micro-batches are cut: no bound beyond the copies
};
StageMap stage_map(const Scenario& scenario, const Layout& layout);

// Stage maps of the schedules in a space. Names are numbered, so that a look-up compares integers.
class StageMaps {
 public:
  const StageMap& get(const Scenario& scenario, const Layout& layout);  // thread-safe

 private:
  using Key = std::tuple<std::size_t, int, int, bool, bool, std::int64_t>;

  std::size_t number(const ScheduleConfig& schedule);

  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> names_;
  std::map<Key, StageMap> maps_;
};

double least_step_seconds(const StageMap& map, const Layout& layout, const std::vector<ChunkCost>& chunks);
Bytes least_memory(const Scenario& scenario, const StageMap& map, const Layout& layout,
                   const std::vector<ChunkCost>& chunks);

}  // namespace k3sim
