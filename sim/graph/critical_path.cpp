// Back from the last finish along predecessors that end exactly when their successor starts; slack by one pass in
// reverse topological order. O(V + E). Source: critical path method (Kelley and Walker 1959).
#include "sim/graph/critical_path.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

namespace {

// For every task the smallest-id predecessor that finishes exactly when the task starts; invalid when there is none.
std::vector<TaskId> binding_predecessors(const TaskGraph& g, const TaskTimes& times) {
  std::vector<TaskId> binding(g.task_count());
  const auto consider = [&](TaskId before, TaskId after) {
    const bool binds = times.finish[before.value] == times.start[after.value];
    if (binds && before < binding[after.value]) binding[after.value] = before;  // an invalid id is the largest
  };
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    const auto tasks = g.stream_tasks(StreamId(s));
    for (std::size_t i = 1; i < tasks.size(); ++i) consider(tasks[i - 1], tasks[i]);
  }
  for (std::size_t t = 0; t < g.task_count(); ++t) {
    for (TaskId next : g.successors(TaskId(t))) consider(TaskId(t), next);
  }
  return binding;
}

// Tasks with the position of each in stream_order(), in a topological order.
struct Visit {
  TaskId task;
  std::uint32_t at;
};

std::vector<Visit> topological_order(const TaskGraph& g) {
  std::vector<Visit> visits;
  visits.reserve(g.task_count());
  WalkState state;
  walk_streams(
      g, state,
      [&](TaskId t, std::uint32_t at) {
        visits.push_back({t, at});
      },
      [](TaskId, TaskId) {});
  CS_CHECK(visits.size() == g.task_count(), "critical path of a graph with a cycle");
  return visits;
}

std::vector<Time> slack_of(const TaskGraph& g, const TaskTimes& times) {
  std::vector<Time> late_finish(g.task_count(), times.makespan);
  const auto late_start = [&](TaskId t) {
    return late_finish[t.value] - (times.finish[t.value] - times.start[t.value]);
  };
  const std::vector<Visit> visits = topological_order(g);
  for (auto v = visits.rbegin(); v != visits.rend(); ++v) {
    Time& late = late_finish[v->task.value];
    const bool last = v->at + 1 == g.stream_begin()[g.stream(v->task).value + 1];
    if (!last) late = std::min(late, late_start(g.stream_order()[v->at + 1]));
    for (TaskId next : g.successors(v->task)) late = std::min(late, late_start(next));
  }
  for (std::size_t t = 0; t < late_finish.size(); ++t) late_finish[t] -= times.finish[t];
  return late_finish;
}

}  // namespace

CriticalPath critical_path(const TaskGraph& g, const TaskTimes& times) {
  CS_CHECK(times.finish.size() == g.task_count(), "times of {} tasks for a graph of {}", times.finish.size(),
           g.task_count());
  CriticalPath out;
  if (g.task_count() == 0) return out;
  const auto last = std::max_element(times.finish.begin(), times.finish.end());
  const std::vector<TaskId> binding = binding_predecessors(g, times);
  for (TaskId t(static_cast<std::size_t>(last - times.finish.begin())); t.valid(); t = binding[t.value]) {
    out.tasks.push_back(t);
    const TaskKind kind = g.kind(t);
    if (out.time_by_kind.size() <= kind) out.time_by_kind.resize(kind + std::size_t{1});
    out.time_by_kind[kind] += times.finish[t.value] - times.start[t.value];
  }
  std::reverse(out.tasks.begin(), out.tasks.end());
  CS_CHECK(times.start[out.tasks.front().value] == Time(), "task {} starts at {} ps although nothing holds it back",
           out.tasks.front().value, times.start[out.tasks.front().value].picoseconds());
  out.slack = slack_of(g, times);
  return out;
}

}  // namespace k3sim
