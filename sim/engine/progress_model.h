// Extension point: who decides how long tasks of resource class kExternalProgress take, for example a flow engine whose
// rates depend on what else is in the network. The evaluator keeps streams and dependencies; the model keeps progress.
//
// Per instant the evaluator calls advance(now) once, then start() for every external task that begins, in id order, and
// then next_completion(). A model may therefore solve its rates once, in next_completion(), for everything that
// changed.
#pragma once

#include <vector>

#include "sim/graph/task_graph.h"

namespace k3sim {

class ProgressModel {
 public:
  virtual ~ProgressModel() = default;
  // `work` is the task's entry in the durations: the model may use it or look the task up by its tag.
  virtual void start(TaskId task, Time work, Time now) = 0;
  // When the next running task finishes if nothing else changes; Time::max() when nothing runs. Never in the past.
  virtual Time next_completion() = 0;
  // Moves to `now` <= next_completion() and appends every task that finishes at exactly `now`.
  virtual void advance(Time now, std::vector<TaskId>& finished) = 0;
};

}  // namespace k3sim
