// Longest path by walking the streams; and, when the walk gets stuck, the cycle that blocks it: follow for every
// unfinished task one unfinished predecessor until a task repeats, O(V + E), on the error path only. Source:
// engine-design notes section 1.
#include "sim/graph/longest_path.h"

#include <algorithm>
#include <string>

#include "sim/base/check.h"

namespace k3sim {

namespace {

std::string describe(const std::vector<TaskId>& tasks) {
  constexpr std::size_t kShown = 12;
  std::string text = "tasks wait for each other in a circle: ";
  for (std::size_t i = 0; i < std::min(tasks.size(), kShown); ++i) text += std::to_string(tasks[i].value) + " -> ";
  if (tasks.size() > kShown) text += "... (" + std::to_string(tasks.size() - kShown) + " more) -> ";
  return text + std::to_string(tasks.front().value);
}

// For every task that is not done, one predecessor (on its stream or explicit) that is not done either.
std::vector<TaskId> blockers(const TaskGraph& g, const std::vector<bool>& done) {
  std::vector<TaskId> blocker(g.task_count());
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    TaskId before;
    for (TaskId t : g.stream_tasks(StreamId(s))) {
      if (!done[t.value]) blocker[t.value] = before, before = t;
    }
  }
  for (std::size_t t = 0; t < g.task_count(); ++t) {
    if (done[t]) continue;
    for (TaskId next : g.successors(TaskId(t))) blocker[next.value] = TaskId(t);
  }
  return blocker;
}

[[noreturn]] void report_cycle(const TaskGraph& g, const WalkState& state) {
  std::vector<bool> done(g.task_count(), false);
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    for (std::uint32_t p = g.stream_begin()[s]; p < state.cursor[s]; ++p) done[g.stream_order()[p].value] = true;
  }
  throw CycleError(find_cycle(g, done));
}

}  // namespace

CycleError::CycleError(std::vector<TaskId> tasks) : std::runtime_error(describe(tasks)), tasks_(std::move(tasks)) {}

std::vector<TaskId> find_cycle(const TaskGraph& g, const std::vector<bool>& done) {
  const std::vector<TaskId> blocker = blockers(g, done);
  TaskId at;
  for (std::size_t t = 0; t < g.task_count() && !at.valid(); ++t) {
    if (!done[t]) at = TaskId(t);
  }
  CS_CHECK(at.valid(), "every task is done");
  std::vector<std::uint32_t> seen_at(g.task_count(), 0);
  std::vector<TaskId> chain;
  while (seen_at[at.value] == 0) {
    chain.push_back(at);
    seen_at[at.value] = static_cast<std::uint32_t>(chain.size());
    at = blocker[at.value];
    CS_CHECK(at.valid(), "task {} is not done although nothing blocks it", chain.back().value);
  }
  // The chain runs from a task to what it waits for; the cycle is its tail, turned round to run forward in time.
  std::vector<TaskId> cycle(chain.begin() + seen_at[at.value] - 1, chain.end());
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

void longest_path(const TaskGraph& g, std::span<const Time> durations, WalkState& state, TaskTimes& out) {
  CS_CHECK(durations.size() == g.task_count(), "{} durations for {} tasks", durations.size(), g.task_count());
  out.start.assign(g.task_count(), Time());  // holds the latest explicit predecessor until the task is visited
  out.finish.resize(g.task_count());
  Time* const start = out.start.data();
  Time* const finish = out.finish.data();
  const TaskId* const order = g.stream_order().data();
  const std::uint32_t* const begin = g.stream_begin().data();
  Time makespan;
  const auto visit = [&](TaskId t, std::uint32_t at) {
    const bool first = at == begin[g.stream(t).value];
    const Time free = first ? Time() : finish[order[at - 1].value];
    const Time from = std::max(start[t.value], free);
    start[t.value] = from;
    finish[t.value] = from + durations[t.value];
    makespan = std::max(makespan, finish[t.value]);
  };
  const auto relax = [&](TaskId t, TaskId next) { start[next.value] = std::max(start[next.value], finish[t.value]); };
  if (walk_streams(g, state, visit, relax) != g.task_count()) report_cycle(g, state);
  out.makespan = makespan;
}

TaskTimes longest_path(const TaskGraph& g, std::span<const Time> durations) {
  WalkState state;
  TaskTimes out;
  longest_path(g, durations, state, out);
  return out;
}

}  // namespace k3sim
