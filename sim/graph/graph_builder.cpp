// Counting sorts turn the appended tasks and edges into stream lists and CSR successors, O(V + E).
#include "sim/graph/graph_builder.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr std::size_t kMaxCount = std::numeric_limits<std::uint32_t>::max() - 1;
}  // namespace

void GraphBuilder::reserve(std::size_t tasks, std::size_t edges) {
  graph_.stream_.reserve(tasks);
  graph_.kind_.reserve(tasks);
  graph_.resource_.reserve(tasks);
  graph_.tag_.reserve(tasks);
  durations_.reserve(tasks);
  edges_.reserve(edges);
}

StreamId GraphBuilder::add_stream(const StreamInfo& info) {
  graph_.streams_.push_back(info);
  return StreamId(graph_.streams_.size() - 1);
}

TaskId GraphBuilder::add(const TaskSpec& spec) {
  CS_CHECK(spec.stream.value < graph_.streams_.size(), "task {} on unknown stream {}", task_count(), spec.stream.value);
  CS_CHECK(spec.duration >= Time(), "task {} lasts {} ps", task_count(), spec.duration.picoseconds());
  CS_CHECK(shared_class(spec.resource) <= kMaxSharedClass, "task {} has resource class {}", task_count(),
           spec.resource);
  CS_CHECK(task_count() < kMaxCount, "more than {} tasks", kMaxCount);
  graph_.stream_.push_back(spec.stream);
  graph_.kind_.push_back(spec.kind);
  graph_.resource_.push_back(spec.resource);
  graph_.tag_.push_back(spec.tag);
  durations_.push_back(spec.duration);
  return TaskId(durations_.size() - 1);
}

void GraphBuilder::depend(TaskId before, TaskId after) {
  CS_CHECK(before.value < task_count() && after.value < task_count(), "edge {} -> {} of {} tasks", before.value,
           after.value, task_count());
  CS_CHECK(before != after, "task {} depends on itself", after.value);
  edges_.emplace_back(before, after);
}

void GraphBuilder::sort_streams() {
  std::vector<std::uint32_t>& begin = graph_.stream_begin_;
  begin.assign(graph_.streams_.size() + 1, 0);
  for (StreamId s : graph_.stream_) ++begin[s.value + 1];
  for (std::size_t s = 1; s < begin.size(); ++s) begin[s] += begin[s - 1];
  graph_.stream_order_.resize(task_count());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t t = 0; t < task_count(); ++t) graph_.stream_order_[next[graph_.stream_[t].value]++] = TaskId(t);
}

void GraphBuilder::sort_edges() {
  CS_CHECK(edges_.size() < kMaxCount, "more than {} edges", kMaxCount);
  std::vector<std::uint32_t>& begin = graph_.successor_begin_;
  begin.assign(task_count() + 2, 0);  // one slot ahead: after the fill below, begin[t] is where task t starts
  graph_.in_degree_.assign(task_count(), 0);
  for (const auto& [before, after] : edges_) {
    ++begin[before.value + 2];
    ++graph_.in_degree_[after.value];
  }
  for (std::size_t t = 2; t < begin.size(); ++t) begin[t] += begin[t - 1];
  graph_.successors_.resize(edges_.size());
  for (const auto& [before, after] : edges_) graph_.successors_[begin[before.value + 1]++] = after;
  begin.pop_back();
  for (std::size_t t = 0; t < task_count(); ++t) {
    if (begin[t + 1] - begin[t] < 2) continue;
    std::sort(graph_.successors_.begin() + begin[t], graph_.successors_.begin() + begin[t + 1]);
  }
}

BuiltGraph GraphBuilder::build() && {
  sort_streams();
  sort_edges();
  edges_ = {};
  graph_.has_external_tasks_ = std::ranges::any_of(graph_.resource_, is_external);
  return {std::move(graph_), std::move(durations_)};
}

}  // namespace k3sim
