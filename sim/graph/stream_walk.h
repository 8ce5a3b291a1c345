// Visits every task of a graph in a topological order without a queue, O(V + E).
//
// A stream runs ahead until its next task still waits for an explicit predecessor; the predecessor's visit puts the
// stream back on a stack. A stream is on the stack at most once, so the stack never exceeds the number of streams, and
// long in-order runs touch memory sequentially. The order is a function of the graph alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/task_graph.h"

namespace k3sim {

// What a walk leaves behind; kept by callers that evaluate many times so that nothing is allocated again.
struct WalkState {
  std::vector<std::uint32_t> waiting_for;  // by task: explicit predecessors not yet visited
  std::vector<std::uint32_t> cursor;       // by stream: position in stream_order() of the next task
  std::vector<StreamId> stack;

  void reset(const TaskGraph& g) {
    waiting_for.assign(g.in_degrees().begin(), g.in_degrees().end());
    cursor.assign(g.stream_begin().begin(), g.stream_begin().end());
    stack.clear();
    for (std::size_t s = g.stream_count(); s-- > 0;) {
      const bool runnable = cursor[s] != cursor[s + 1] && waiting_for[g.stream_order()[cursor[s]].value] == 0;
      if (runnable) stack.push_back(StreamId(s));
    }
  }
};

// Calls visit(task, position in stream_order()) for each task and then relax(task, successor) for each of its explicit
// successors. Returns the number of tasks visited: less than task_count() exactly when there is a cycle.
template <class Visit, class Relax>
std::size_t walk_streams(const TaskGraph& g, WalkState& state, Visit&& visit, Relax&& relax) {
  state.reset(g);
  std::uint32_t* const waiting_for = state.waiting_for.data();
  std::uint32_t* const cursor = state.cursor.data();
  const TaskId* const order = g.stream_order().data();
  const std::uint32_t* const begin = g.stream_begin().data();
  std::size_t visited = 0;
  while (!state.stack.empty()) {
    const StreamId s = state.stack.back();
    state.stack.pop_back();
    const std::uint32_t first = cursor[s.value], end = begin[s.value + 1];
    std::uint32_t at = first;
    for (; at != end && waiting_for[order[at].value] == 0; ++at) {
      const TaskId t = order[at];
      visit(t, at);
      for (TaskId next : g.successors(t)) {
        relax(t, next);
        if (--waiting_for[next.value] != 0) continue;
        const StreamId other = g.stream(next);
        if (other != s && order[cursor[other.value]] == next) state.stack.push_back(other);
      }
    }
    cursor[s.value] = at;
    visited += at - first;
  }
  return visited;
}

}  // namespace k3sim
