// Who is to blame for the makespan: one chain of tasks that fills it without a gap, and the slack of every other task.
//   late_finish(t) = min over what waits for t (stream successor, explicit successors) of late_start, makespan at the
//   end slack(t)       = late_finish(t) - finish(t): by how much t alone may grow before the makespan grows (total
//   float)
// Durations are read off the task times (finish - start), so both evaluators are accepted. Where several
// chains are critical, the path goes back through the smallest task id: a function of the times alone. Source:
// critical path method (Kelley and Walker 1959); used on traces by HTA critical_path_analysis.py.
#pragma once

#include <vector>

#include "sim/graph/longest_path.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

struct CriticalPath {
  std::vector<TaskId> tasks;       // in time order; durations sum to the makespan
  std::vector<Time> time_by_kind;  // index: TaskKind; time of that kind on the path; sums to the makespan
  std::vector<Time> slack;         // by task id; 0 on the path
};

// Requires: times of this graph in which no task starts later than it must.
CriticalPath critical_path(const TaskGraph& graph, const TaskTimes& times);

}  // namespace k3sim
