// Evaluator 1: start and finish of every task when durations are fixed and nothing is shared.
//   start(t) = max(finish of the task before it on its stream, finish of every explicit predecessor, 0)
//   finish(t) = start(t) + duration(t);  makespan = max finish
// One pass in topological order (sim/graph/stream_walk.h), O(V + E), no clock and no queue. Exact integer arithmetic.
// Agrees to the picosecond with the discrete-event evaluator when no resource is shared (tests/property/sim/engine).
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "sim/graph/stream_walk.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

struct TaskTimes {
  std::vector<Time> start;   // by task id
  std::vector<Time> finish;  // by task id
  Time makespan;
};

// Tasks that wait for each other in a circle: tasks()[i] must finish before tasks()[i + 1] may start, and the last one
// before the first.
class CycleError : public std::runtime_error {
 public:
  explicit CycleError(std::vector<TaskId> tasks);
  const std::vector<TaskId>& tasks() const { return tasks_; }

 private:
  std::vector<TaskId> tasks_;
};

// Requires: durations.size() == graph.task_count(). Throws CycleError.
TaskTimes longest_path(const TaskGraph& graph, std::span<const Time> durations);

// The same without allocating when `out` and `state` come from an earlier call on a graph at least as large.
void longest_path(const TaskGraph& graph, std::span<const Time> durations, WalkState& state, TaskTimes& out);

// A cycle among the tasks that were not done when an evaluation could not go on. `done` by task id.
// Requires: at least one task is not done and none of those can start.
std::vector<TaskId> find_cycle(const TaskGraph& graph, const std::vector<bool>& done);

}  // namespace k3sim
