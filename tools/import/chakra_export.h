// A predicted step as Chakra execution traces, one per GPU, for ASTRA-sim or for a replay under another network.
//
// Every rank of the cluster gets the tasks of its pipeline stage: compute with its predicted time, collectives with the
// bytes a rank puts in and the process group, pipeline transfers as matching send and receive nodes. Order on a stream
// and waits are data dependencies. A deduplicated expert exchange is an all-to-all of the bytes that leave the rank,
// and says in network_bytes and nvlink_bytes how they are split. A reduction of dense and expert gradients is two
// nodes. Hybrid sharding (shard_group) is written as its outer group. Source: sim/trace/chakra.h; engine-design
// section 13.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/build/data_parallel.h"
#include "models/build/step_graph.h"
#include "sim/graph/longest_path.h"
#include "sim/trace/chakra.h"

namespace k3sim {

class ChakraExport {
 public:
  // The graph must be folded (no unfolded dimensions). All arguments are read until the last call.
  ChakraExport(const StepPlan& plan, const Machine& machine, const StepGraph& graph, const TaskTimes& times);

  int world() const { return plan_.placement->world(); }
  ChakraTrace rank(int world_rank) const;
  // {"group": [ranks], ...}: ASTRA-sim's comm-group file. Names are numbers, as it wants them.
  std::string groups_json() const;

 private:
  struct Writer;
  void index_tasks();
  void number_groups();
  int group_name(GroupKind kind, int world_rank) const;
  int stage_of(TaskId t) const;  // pipeline rank; -1: global

  const StepPlan& plan_;
  const Machine& machine_;
  const StepGraph& graph_;
  const TaskTimes& times_;
  DataParallel data_parallel_;
  std::vector<std::vector<TaskId>> tasks_;       // by pipeline rank, in order of start; global ones in all of them
  std::vector<std::vector<TaskId>> before_;      // explicit predecessors
  std::vector<TaskId> stream_before_;            // by task
  std::vector<const TimedItem*> items_;          // by label; null: no layer item
  std::map<std::pair<int, int>, int> group_of_;  // (kind, leader's world rank) -> name
  std::vector<std::vector<int>> groups_;         // by name
};

}  // namespace k3sim
