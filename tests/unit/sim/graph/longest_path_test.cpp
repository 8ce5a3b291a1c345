// Hand-computed schedules, closed forms of pipelines, and cycles that must be named.
#include "sim/graph/longest_path.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/check.h"
#include "sim/graph/graph_builder.h"

namespace k3sim {
namespace {

StreamId stream(GraphBuilder& b, int rank) {
  return b.add_stream({RankId(rank), 0});
}

// GPipe: P stages, M micro-batches, all forwards and then all backwards on each stage.
BuiltGraph gpipe(int stages, int micro_batches, Time forward, Time backward) {
  GraphBuilder b;
  std::vector<std::vector<TaskId>> f(static_cast<std::size_t>(stages)), g(static_cast<std::size_t>(stages));
  for (std::size_t s = 0; s < f.size(); ++s) {
    const StreamId compute = stream(b, static_cast<int>(s));
    for (int m = 0; m < micro_batches; ++m) f[s].push_back(b.add(compute, 0, forward));
    for (int m = 0; m < micro_batches; ++m) g[s].push_back(b.add(compute, 1, backward));
  }
  for (std::size_t s = 0; s + 1 < f.size(); ++s) {
    for (std::size_t m = 0; m < f[s].size(); ++m) {
      b.depend(f[s][m], f[s + 1][m]);
      b.depend(g[s + 1][m], g[s][m]);
    }
  }
  return std::move(b).build();
}

TEST_CASE("longest_path: tasks of one stream follow each other without edges") {
  GraphBuilder b;
  const StreamId s = stream(b, 0);
  const TaskId first = b.add(s, 0, Time::ns(3)), second = b.add(s, 0, Time::ns(4));
  const BuiltGraph built = std::move(b).build();
  const TaskTimes out = longest_path(built.graph, built.durations);
  CHECK(out.finish[first.value] == Time::ns(3));
  CHECK(out.start[second.value] == Time::ns(3));
  CHECK(out.makespan == Time::ns(7));
}

TEST_CASE("longest_path: a task waits for the later of its stream and its dependencies") {
  GraphBuilder b;
  const StreamId a = stream(b, 0), c = stream(b, 1);
  const TaskId slow = b.add(a, 0, Time::ns(10));
  b.add(c, 0, Time::ns(2));
  const TaskId join = b.add(c, 0, Time::ns(1));
  b.depend(slow, join);
  const BuiltGraph built = std::move(b).build();
  CHECK(longest_path(built.graph, built.durations).start[join.value] == Time::ns(10));
}

TEST_CASE("longest_path: a refilled duration changes the schedule of the same topology") {
  BuiltGraph built = gpipe(4, 8, Time::us(1), Time::us(2));
  WalkState state;
  TaskTimes out;
  longest_path(built.graph, built.durations, state, out);
  CHECK(out.makespan == (8 + 4 - 1) * Time::us(3));
  for (Time& d : built.durations) d = d * 7;
  longest_path(built.graph, built.durations, state, out);
  CHECK(out.makespan == 7 * (8 + 4 - 1) * Time::us(3));
}

TEST_CASE("longest_path: GPipe takes (M + P - 1) times forward plus backward") {
  for (int p : {1, 2, 3, 8}) {
    for (int m : {1, 2, 5, 16}) {
      const BuiltGraph built = gpipe(p, m, Time::ns(13), Time::ns(29));
      CHECK(longest_path(built.graph, built.durations).makespan == (m + p - 1) * Time::ns(42));
    }
  }
}

TEST_CASE("longest_path: an empty graph ends at time zero") {
  const BuiltGraph built = GraphBuilder().build();
  CHECK(longest_path(built.graph, built.durations).makespan == Time());
}

TEST_CASE("longest_path: exchanged sends and receives deadlock, and the error names the tasks in waiting order") {
  GraphBuilder b;
  const StreamId a = stream(b, 0), c = stream(b, 1);
  b.add(a, 0, Time::ns(1));
  const TaskId a_first = b.add(a, 0, Time::ns(1)), a_second = b.add(a, 0, Time::ns(1));
  const TaskId c_first = b.add(c, 0, Time::ns(1)), c_second = b.add(c, 0, Time::ns(1));
  b.depend(c_second, a_first);
  b.depend(a_second, c_first);
  const BuiltGraph built = std::move(b).build();
  try {
    longest_path(built.graph, built.durations);
    FAIL("no cycle reported");
  } catch (const CycleError& e) {
    CHECK(e.tasks() == std::vector<TaskId>{a_first, a_second, c_first, c_second});
    CHECK(std::string(e.what()).find("1 -> 2 -> 3 -> 4 -> 1") != std::string::npos);
  }
}

TEST_CASE("longest_path: an edge against stream order is a cycle of two") {
  GraphBuilder b;
  const StreamId s = stream(b, 0);
  const TaskId first = b.add(s, 0, Time::ns(1)), second = b.add(s, 0, Time::ns(1));
  b.depend(second, first);
  const BuiltGraph built = std::move(b).build();
  CHECK_THROWS_AS(longest_path(built.graph, built.durations), CycleError);
}

TEST_CASE("graph_builder: successors are sorted whatever the order of depend") {
  GraphBuilder b;
  const StreamId s = stream(b, 0), r = stream(b, 1);
  const TaskId source = b.add(s, 0, Time());
  std::vector<TaskId> sinks;
  for (int i = 0; i < 5; ++i) sinks.push_back(b.add(r, 0, Time()));
  for (int i : {3, 0, 4, 1, 2}) b.depend(source, sinks[static_cast<std::size_t>(i)]);
  const BuiltGraph built = std::move(b).build();
  CHECK(std::ranges::equal(built.graph.successors(source), sinks));
  CHECK(built.graph.in_degree(sinks[2]) == 1);
}

TEST_CASE("graph_builder: interleaved insertion keeps each stream's order and the caller's tags") {
  GraphBuilder b;
  const StreamId s = stream(b, 0), r = stream(b, 1);
  for (std::uint32_t i = 0; i < 6; ++i) b.add(i % 2 == 0 ? s : r, static_cast<TaskKind>(i), Time(), 100 + i);
  const BuiltGraph built = std::move(b).build();
  std::vector<std::uint32_t> tags;
  for (TaskId t : built.graph.stream_tasks(r)) tags.push_back(built.graph.tag(t));
  CHECK(tags == std::vector<std::uint32_t>{101, 103, 105});
}

TEST_CASE("graph_builder: negative durations, unknown streams and self-dependencies are refused") {
  GraphBuilder b;
  const StreamId s = stream(b, 0);
  CHECK_THROWS_AS(b.add(s, 0, Time::ps(-1)), InternalError);
  CHECK_THROWS_AS(b.add(StreamId(9), 0, Time()), InternalError);
  const TaskId t = b.add(s, 0, Time());
  CHECK_THROWS_AS(b.depend(t, t), InternalError);
  CHECK_THROWS_AS(b.depend(t, TaskId(7)), InternalError);
}

}  // namespace
}  // namespace k3sim
