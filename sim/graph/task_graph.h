// A set of in-order streams and the dependencies between their tasks, in flat arrays; knows nothing of durations.
//
// A task starts when (a) the task inserted before it on the same stream has finished and (b) every explicit predecessor
// has finished. Stream order is implicit and costs no edge; explicit edges are successors in CSR, sorted by id, so that
// nothing depends on the order in which edges were added. Durations live in a separate std::vector<Time> indexed by
// task id: a sweep keeps one topology and refills only that vector.
// About 27 bytes per task + 4 per edge. Limits: 2^32 - 2 tasks, streams and edges.
// Source: engine-design notes section 1 (structure of arrays; building costs several times evaluating).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace k3sim {

using TaskKind = std::uint16_t;  // what the task is; meaning belongs to the caller

// What the task occupies while it runs; the discrete-event evaluator slows classes down against each other when both
// are active on one device. Class 0 never shares anything.
using ResourceClass = std::uint8_t;
inline constexpr ResourceClass kExclusive = 0;
inline constexpr ResourceClass kMaxSharedClass = 7;
// A progress model (for example the flow engine) decides how long it takes; plus a shared class: it slows down what
// runs beside it on the device, but the model alone decides about its own pace.
inline constexpr ResourceClass kExternalProgress = 128;
constexpr bool is_external(ResourceClass r) {
  return r >= kExternalProgress;
}
constexpr ResourceClass shared_class(ResourceClass r) {
  return r % kExternalProgress;
}

struct StreamInfo {
  RankId rank;            // streams of one rank share one device; invalid: belongs to no device
  std::uint8_t role = 0;  // compute, communicator, copy engine, host thread, ...: meaning belongs to the caller
};

class TaskGraph {
 public:
  std::size_t task_count() const { return stream_.size(); }
  std::size_t stream_count() const { return streams_.size(); }
  std::size_t edge_count() const { return successors_.size(); }

  StreamId stream(TaskId t) const { return stream_[t.value]; }
  TaskKind kind(TaskId t) const { return kind_[t.value]; }
  std::uint32_t tag(TaskId t) const { return tag_[t.value]; }  // caller's own index, for example of an action
  ResourceClass resource(TaskId t) const { return resource_[t.value]; }
  std::uint32_t in_degree(TaskId t) const { return in_degree_[t.value]; }  // explicit predecessors
  std::span<const TaskId> successors(TaskId t) const {
    return {successors_.data() + successor_begin_[t.value], successors_.data() + successor_begin_[t.value + 1]};
  }

  const StreamInfo& info(StreamId s) const { return streams_[s.value]; }
  std::span<const TaskId> stream_tasks(StreamId s) const {  // in execution order
    return {stream_order_.data() + stream_begin_[s.value], stream_order_.data() + stream_begin_[s.value + 1]};
  }

  // Whole arrays, for evaluators. stream_order() holds the tasks of stream 0, then of stream 1, ...; stream s owns the
  // positions [stream_begin()[s], stream_begin()[s + 1]).
  std::span<const std::uint32_t> in_degrees() const { return in_degree_; }
  std::span<const TaskId> stream_order() const { return stream_order_; }
  std::span<const std::uint32_t> stream_begin() const { return stream_begin_; }

  bool has_external_tasks() const { return has_external_tasks_; }  // any that is_external
  std::size_t memory_bytes() const;

 private:
  friend class GraphBuilder;
  std::vector<StreamId> stream_;
  std::vector<TaskKind> kind_;
  std::vector<ResourceClass> resource_;
  std::vector<std::uint32_t> tag_;
  std::vector<std::uint32_t> in_degree_;
  std::vector<std::uint32_t> successor_begin_;
  std::vector<TaskId> successors_;
  std::vector<TaskId> stream_order_;
  std::vector<std::uint32_t> stream_begin_;
  std::vector<StreamInfo> streams_;
  bool has_external_tasks_ = false;
};

}  // namespace k3sim
