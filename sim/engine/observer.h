// What a simulation tells others while it runs: traces, statistics, memory timelines and the fingerprint listen here.
// Callbacks come in the total order (time, priority, task id): all finishes of an instant by id, then its starts by id;
// zero-length tasks started at an instant form the next round of the same instant.
#pragma once

#include "sim/graph/event_fingerprint.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_start(TaskId task, Time now) = 0;
  virtual void on_finish(TaskId task, Time now) = 0;
};

// Equals event_fingerprint(graph, times) of the finished run.
class FingerprintObserver final : public Observer {
 public:
  explicit FingerprintObserver(const TaskGraph& graph) : graph_(&graph) {}
  void on_start(TaskId t, Time now) override { sum_.add(now, TaskEvent::start, graph_->kind(t), t); }
  void on_finish(TaskId t, Time now) override { sum_.add(now, TaskEvent::finish, graph_->kind(t), t); }
  std::uint64_t value() const { return sum_.value(); }

 private:
  const TaskGraph* graph_;
  EventFingerprint sum_;
};

}  // namespace k3sim
