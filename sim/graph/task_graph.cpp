// Size of a task graph; everything else of TaskGraph is inline.
#include "sim/graph/task_graph.h"

namespace k3sim {

namespace {
template <class T>
std::size_t bytes(const std::vector<T>& v) {
  return v.size() * sizeof(T);
}
}  // namespace

std::size_t TaskGraph::memory_bytes() const {
  return bytes(stream_) + bytes(kind_) + bytes(resource_) + bytes(tag_) + bytes(in_degree_) + bytes(successor_begin_) +
         bytes(successors_) + bytes(stream_order_) + bytes(stream_begin_) + bytes(streams_);
}

}  // namespace k3sim
