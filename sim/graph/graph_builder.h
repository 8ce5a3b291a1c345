// Append-only builder of a TaskGraph and its first durations.
//
//   GraphBuilder b;
//   const StreamId compute = b.add_stream({RankId(0), kCompute});
//   const TaskId forward = b.add(compute, kForward, Time::us(10));
//   const TaskId send = b.add(out, kSend, Time::us(2));
//   b.depend(forward, send);                       // send starts after forward has finished
//   auto [graph, durations] = std::move(b).build();
//
// Task ids count up from 0 in insertion order; the order of tasks on a stream is the order of add(). The order of
// depend() calls has no effect on the graph. Cycles are found by the evaluators, which name the tasks on them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/graph/task_graph.h"

namespace k3sim {

struct TaskSpec {
  StreamId stream;
  TaskKind kind = 0;
  Time duration;                        // at full speed
  std::uint32_t tag = 0;                // returned by TaskGraph::tag
  ResourceClass resource = kExclusive;  // 0 ... kMaxSharedClass, and kExternalProgress added
};

struct BuiltGraph {
  TaskGraph graph;
  std::vector<Time> durations;  // by task id
};

class GraphBuilder {
 public:
  void reserve(std::size_t tasks, std::size_t edges);
  StreamId add_stream(const StreamInfo& info);

  // Requires: a stream of this builder; duration >= 0; a known resource class.
  TaskId add(const TaskSpec& spec);
  TaskId add(StreamId stream, TaskKind kind, Time duration, std::uint32_t tag = 0) {
    return add(TaskSpec{stream, kind, duration, tag, kExclusive});
  }
  // Requires: both tasks exist and differ.
  void depend(TaskId before, TaskId after);

  std::size_t task_count() const { return durations_.size(); }
  std::size_t edge_count() const { return edges_.size(); }

  BuiltGraph build() &&;

 private:
  void sort_streams();
  void sort_edges();

  TaskGraph graph_;
  std::vector<Time> durations_;
  std::vector<std::pair<TaskId, TaskId>> edges_;
};

}  // namespace k3sim
