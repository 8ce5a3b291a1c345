// 64-bit fingerprint of a simulation: which task (kind, id) started and finished at which picosecond.
//   fingerprint = hash(sum over events of hash(time, start | finish, kind, id) mod 2^64, number of events)
// The sum makes it independent of the order in which events are fed, so both evaluators, several threads and replayed
// times give the same value; nothing is lost, because the total order of events is itself a function of the set.
// Idea: OMNeT++ src/sim/cfingerprint.h. Not cryptographic.
#pragma once

#include <cstdint>

#include "sim/base/fingerprint.h"
#include "sim/graph/longest_path.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

enum class TaskEvent : std::uint8_t { start = 0, finish = 1 };

class EventFingerprint {
 public:
  void add(Time time, TaskEvent event, TaskKind kind, TaskId task) {
    const std::uint64_t what = (std::uint64_t{kind} << 40) | (static_cast<std::uint64_t>(event) << 32) | task.value;
    sum_ += Fingerprint::mix(Fingerprint::mix(static_cast<std::uint64_t>(time.picoseconds())) ^ what);
    ++events_;
  }
  std::uint64_t value() const {
    Fingerprint f;
    f.add(sum_);
    f.add(events_);
    return f.value();
  }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t events_ = 0;
};

inline std::uint64_t event_fingerprint(const TaskGraph& graph, const TaskTimes& times) {
  EventFingerprint f;
  for (std::size_t t = 0; t < graph.task_count(); ++t) {
    f.add(times.start[t], TaskEvent::start, graph.kind(TaskId(t)), TaskId(t));
    f.add(times.finish[t], TaskEvent::finish, graph.kind(TaskId(t)), TaskId(t));
  }
  return f.value();
}

}  // namespace k3sim
