// Two evaluators of one graph must agree to the picosecond; the order of insertion of edges must not be visible; slowed
// tasks never lose work. Thousands of random graphs.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/engine/engine.h"
#include "sim/graph/critical_path.h"
#include "tests/property/sim/random_graph.h"

namespace k3sim {
namespace {

constexpr std::uint64_t kGraphs = 6000;

bool same(const TaskTimes& a, const TaskTimes& b) {
  return a.makespan == b.makespan && a.start == b.start && a.finish == b.finish;
}

SlowdownTable random_table(std::uint64_t seed) {
  testing::Dice dice(seed, 3);
  SlowdownMatrix m = no_slowdown();
  for (auto& row : m) {
    for (double& f : row) f = 1.0 + dice.below(1500) / 1000.0;
  }
  return SlowdownTable(m);
}

// Slowest possible: every task runs at the factor it would have with all classes active.
std::vector<Time> slowest(const BuiltGraph& g, const SlowdownTable& table) {
  std::vector<Time> out = g.durations;
  for (std::size_t t = 0; t < out.size(); ++t) {
    const ResourceClass c = g.graph.resource(TaskId(t));
    if (c != kExclusive) out[t] = SlowdownTable::time_for(out[t], table.factor(c, 0xfe)) + Time::ns(1);
  }
  return out;
}

// External tasks take exactly their work: a progress model that must not be visible in the result.
class FixedSpeed final : public ProgressModel {
 public:
  void start(TaskId task, Time work, Time now) override { running_.emplace_back(now + work, task); }
  Time next_completion() override {
    Time next = Time::max();
    for (const auto& [finish, task] : running_) next = std::min(next, finish);
    return next;
  }
  void advance(Time now, std::vector<TaskId>& finished) override {
    for (const auto& [finish, task] : running_) {
      if (finish == now) finished.push_back(task);
    }
    std::erase_if(running_, [&](const auto& r) { return r.first == now; });
  }

 private:
  std::vector<std::pair<Time, TaskId>> running_;
};

TEST_CASE("evaluators: longest path and discrete events agree to the picosecond on random graphs") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const BuiltGraph g = testing::random_graph({.seed = seed, .classes = 3});
    const TaskTimes path = longest_path(g.graph, g.durations);
    const SlowdownTable ones;
    const EngineResult events = simulate(g.graph, g.durations, {.slowdown = &ones});
    REQUIRE_MESSAGE(same(path, events.times), "seed " << seed);
    REQUIRE(events.stats.events == g.graph.task_count());
  }
}

TEST_CASE("evaluators: a sharing table in which nothing of the graph slows anything is invisible") {
  SlowdownMatrix m = no_slowdown();
  m[5][6] = 2.0;  // classes that the graphs do not use: the sharing machinery runs, all factors are 1
  const SlowdownTable table(m);
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const BuiltGraph g = testing::random_graph({.seed = seed, .classes = 3});
    const EngineResult events = simulate(g.graph, g.durations, {.slowdown = &table});
    REQUIRE_MESSAGE(same(longest_path(g.graph, g.durations), events.times), "seed " << seed);
    REQUIRE(events.stats.rate_changes == 0);
  }
}

TEST_CASE("evaluators: tasks timed by a progress model at fixed speed agree as well") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const BuiltGraph g = testing::random_graph({.seed = seed, .external_tasks = true});
    FixedSpeed model;
    const EngineResult events = simulate(g.graph, g.durations, {.progress = &model});
    REQUIRE_MESSAGE(same(longest_path(g.graph, g.durations), events.times), "seed " << seed);
  }
}

TEST_CASE("evaluators: the order in which edges are added leaves times and fingerprint unchanged") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const BuiltGraph a = testing::random_graph({.seed = seed, .classes = 4});
    const BuiltGraph b = testing::random_graph({.seed = seed, .shuffle_edges = true, .classes = 4});
    const SlowdownTable table = random_table(seed);
    FingerprintObserver seen_a(a.graph), seen_b(b.graph);
    const EngineResult ran_a = simulate(a.graph, a.durations, {.slowdown = &table, .observer = &seen_a});
    const EngineResult ran_b = simulate(b.graph, b.durations, {.slowdown = &table, .observer = &seen_b});
    REQUIRE_MESSAGE(same(ran_a.times, ran_b.times), "seed " << seed);
    REQUIRE(seen_a.value() == seen_b.value());
    REQUIRE(seen_a.value() == event_fingerprint(a.graph, ran_a.times));
  }
}

TEST_CASE("evaluators: slow-down lies between full speed and everything slowed by everything") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const BuiltGraph g = testing::random_graph({.seed = seed, .classes = 4});
    const SlowdownTable table = random_table(seed);
    const TaskTimes fast = longest_path(g.graph, g.durations), slow = longest_path(g.graph, slowest(g, table));
    const TaskTimes shared = simulate(g.graph, g.durations, {.slowdown = &table}).times;
    for (std::size_t t = 0; t < g.graph.task_count(); ++t) {
      REQUIRE(shared.finish[t] - shared.start[t] >= g.durations[t]);
      REQUIRE(shared.start[t] >= fast.start[t]);
      REQUIRE(shared.finish[t] <= slow.finish[t]);
    }
  }
}

TEST_CASE("critical_path: fills the makespan without a gap, has no slack, and slack is what a task may grow") {
  for (std::uint64_t seed = 0; seed < kGraphs / 4; ++seed) {
    BuiltGraph g = testing::random_graph({.seed = seed, .classes = 2});
    if (g.graph.task_count() == 0) continue;
    const TaskTimes times = longest_path(g.graph, g.durations);
    const CriticalPath path = critical_path(g.graph, times);
    Time at, by_kind;
    for (TaskId t : path.tasks) {
      REQUIRE(times.start[t.value] == at);
      REQUIRE(path.slack[t.value] == Time());
      at = times.finish[t.value];
    }
    for (Time t : path.time_by_kind) by_kind += t;
    REQUIRE(at == times.makespan);
    REQUIRE(by_kind == times.makespan);
    testing::Dice dice(seed, 4);
    const std::size_t grown = dice.below(static_cast<std::uint32_t>(g.graph.task_count()));
    g.durations[grown] += path.slack[grown];
    REQUIRE(longest_path(g.graph, g.durations).makespan == times.makespan);
    g.durations[grown] += Time::ps(1);
    REQUIRE(longest_path(g.graph, g.durations).makespan == times.makespan + Time::ps(1));
  }
}

}  // namespace
}  // namespace k3sim
