// Evaluator 2: discrete events over the same task graph as longest_path, for durations that depend on what else runs.
//
// Streams run their tasks in order; a task starts when the one before it and all its dependencies have finished. The
// host thread is one more stream ("a GPU task may not start before its launch has finished" is an edge). Tasks of
// shared classes slow each other down per device (slowdown.h); external tasks are timed by a ProgressModel. One
// instant: all completions (by id) -> starts they release (by id) -> rates recomputed once. An event is one pop that
// changes state; a run has exactly one per task.
// Total order (time, priority, id): priorities.h. Without sharing it agrees with longest_path to the picosecond.
// Source: engine-design notes sections 1-4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/observer.h"
#include "sim/engine/progress_model.h"
#include "sim/engine/slowdown.h"
#include "sim/graph/longest_path.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

struct EngineOptions {
  const SlowdownTable* slowdown = nullptr;  // null: tasks of all classes run at full speed
  ProgressModel* progress = nullptr;        // required when the graph has tasks of class kExternalProgress
  Observer* observer = nullptr;
};

struct EngineStats {
  std::uint64_t events = 0;        // completions processed
  std::uint64_t rate_changes = 0;  // predictions replaced because the neighbourhood of a running task changed
  std::size_t max_pending = 0;     // most tasks running between two instants
};

struct EngineResult {
  TaskTimes times;
  EngineStats stats;
};

// Requires: durations.size() == graph.task_count(). Throws CycleError when tasks wait for each other in a circle.
EngineResult simulate(const TaskGraph& graph, std::span<const Time> durations, const EngineOptions& options = {});

}  // namespace k3sim
