// Hand-computed runs: shared rates, host thread, order of callbacks, external progress, and what cannot finish.
#include "sim/engine/engine.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/graph/graph_builder.h"

namespace k3sim {
namespace {

constexpr ResourceClass kCompute = 1, kNetwork = 2;

SlowdownTable table(double compute_factor, double network_factor) {
  SlowdownMatrix m = no_slowdown();
  m[kCompute][kNetwork] = compute_factor;
  m[kNetwork][kCompute] = network_factor;
  return SlowdownTable(m);
}

struct TwoStreams {
  GraphBuilder b;
  StreamId compute, network;
  explicit TwoStreams(int network_rank = 0) {
    compute = b.add_stream({RankId(0), 0});
    network = b.add_stream({RankId(network_rank), 1});
  }
};

TEST_CASE("engine: a kernel slowed to half speed for its first half ends a quarter late") {
  TwoStreams two;
  const TaskId kernel = two.b.add({.stream = two.compute, .duration = Time::us(100), .resource = kCompute});
  const TaskId comm = two.b.add({.stream = two.network, .duration = Time::us(50), .resource = kNetwork});
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(2.0, 1.0);
  const EngineResult out = simulate(g.graph, g.durations, {.slowdown = &slow});
  CHECK(out.times.finish[comm.value] == Time::us(50));
  CHECK(out.times.finish[kernel.value] == Time::us(125));  // 25 us of work in the first 50 us, 75 us after
  CHECK(out.stats.rate_changes == 1);
}

TEST_CASE("engine: both sides slow down, each by its own factor") {
  TwoStreams two;
  const TaskId kernel = two.b.add({.stream = two.compute, .duration = Time::us(90), .resource = kCompute});
  const TaskId comm = two.b.add({.stream = two.network, .duration = Time::us(40), .resource = kNetwork});
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(1.25, 1.5);
  const EngineResult out = simulate(g.graph, g.durations, {.slowdown = &slow});
  CHECK(out.times.finish[comm.value] == Time::us(60));
  CHECK(out.times.finish[kernel.value] == Time::us(102));  // 48 us of work in 60 us, 42 us after
}

TEST_CASE("engine: tasks on different devices do not slow each other down") {
  TwoStreams two(1);
  const TaskId kernel = two.b.add({.stream = two.compute, .duration = Time::us(90), .resource = kCompute});
  two.b.add({.stream = two.network, .duration = Time::us(40), .resource = kNetwork});
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(2.0, 2.0);
  CHECK(simulate(g.graph, g.durations, {.slowdown = &slow}).times.finish[kernel.value] == Time::us(90));
}

TEST_CASE("engine: a chain of short communications slows the kernel all along without drift") {
  TwoStreams two;
  const TaskId kernel = two.b.add({.stream = two.compute, .duration = Time::us(1000), .resource = kCompute});
  for (int i = 0; i < 2000; ++i) two.b.add({.stream = two.network, .duration = Time::us(1), .resource = kNetwork});
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(1.5, 1.0);
  CHECK(simulate(g.graph, g.durations, {.slowdown = &slow}).times.finish[kernel.value] == Time::us(1500));
}

TEST_CASE("engine: many changes of rate outdate many predictions and the work is still conserved") {
  TwoStreams two;
  const TaskId kernel = two.b.add({.stream = two.compute, .duration = Time::ms(10), .resource = kCompute});
  for (int i = 0; i < 1000; ++i) {
    two.b.add({.stream = two.network, .duration = Time::us(2), .resource = kNetwork});
    two.b.add({.stream = two.network, .duration = Time::us(2)});  // a pause: shares nothing
  }
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(2.0, 1.0);
  const EngineResult out = simulate(g.graph, g.durations, {.slowdown = &slow});
  // 4 ms of alternation do 3 ms of work; the other 7 ms run at full speed.
  CHECK(out.times.finish[kernel.value] == Time::ms(11));
  CHECK(out.stats.rate_changes == 1999);
}

TEST_CASE("engine: host-bound kernels start when their launch has finished") {
  GraphBuilder b;
  const StreamId host = b.add_stream({RankId(0), 9}), gpu = b.add_stream({RankId(0), 0});
  std::vector<TaskId> kernels;
  for (int i = 0; i < 4; ++i) {
    const TaskId launch = b.add(host, 1, Time::us(5));
    kernels.push_back(b.add(gpu, 0, i == 0 ? Time::us(12) : Time::us(1)));
    b.depend(launch, kernels.back());
  }
  const BuiltGraph g = std::move(b).build();
  const TaskTimes times = simulate(g.graph, g.durations).times;
  CHECK(times.start[kernels[0].value] == Time::us(5));
  CHECK(times.start[kernels[1].value] == Time::us(17));  // GPU busy
  CHECK(times.start[kernels[3].value] == Time::us(20));  // waits for the host again
}

TEST_CASE("engine: callbacks of one instant are finishes by id and then starts by id") {
  struct Log final : Observer {
    std::vector<std::pair<char, std::uint32_t>> seen;
    void on_start(TaskId t, Time) override { seen.emplace_back('s', t.value); }
    void on_finish(TaskId t, Time) override { seen.emplace_back('f', t.value); }
  } log;
  GraphBuilder b;
  const StreamId late = b.add_stream({RankId(1), 0}), early = b.add_stream({RankId(0), 0});
  b.add(early, 0, Time::ns(1));  // 0
  b.add(late, 0, Time::ns(1));   // 1
  b.add(late, 0, Time());        // 2
  b.add(early, 0, Time());       // 3
  const BuiltGraph g = std::move(b).build();
  simulate(g.graph, g.durations, {.observer = &log});
  const std::vector<std::pair<char, std::uint32_t>> expected = {{'s', 0}, {'s', 1}, {'f', 0}, {'f', 1},
                                                                {'s', 2}, {'s', 3}, {'f', 2}, {'f', 3}};
  CHECK(log.seen == expected);
}

// One link of fixed capacity shared equally by all running tasks: work is in ps at full rate.
class EqualShare final : public ProgressModel {
 public:
  void start(TaskId task, Time work, Time now) override {
    settle(now);
    running_.emplace_back(task, work);
  }
  Time next_completion() override {
    Time least = Time::max();
    for (const auto& [task, left] : running_) least = std::min(least, left);
    return running_.empty() ? Time::max() : at_ + least * static_cast<std::int64_t>(running_.size());
  }
  void advance(Time now, std::vector<TaskId>& finished) override {
    settle(now);
    for (const auto& [task, left] : running_) {
      if (left == Time()) finished.push_back(task);
    }
    std::erase_if(running_, [](const auto& r) { return r.second == Time(); });
  }

 private:
  void settle(Time now) {
    for (auto& [task, left] : running_) {
      left -= Time::ps((now - at_).picoseconds() / static_cast<std::int64_t>(running_.size()));
    }
    at_ = now;
  }
  std::vector<std::pair<TaskId, Time>> running_;
  Time at_;
};

TEST_CASE("engine: a progress model decides when external tasks end and the graph goes on from there") {
  TwoStreams two(1);
  const TaskId a = two.b.add({.stream = two.compute, .duration = Time::us(10), .resource = kExternalProgress});
  const TaskId b = two.b.add({.stream = two.network, .duration = Time::us(30), .resource = kExternalProgress});
  const TaskId after = two.b.add({.stream = two.compute, .duration = Time::us(1)});
  const BuiltGraph g = std::move(two.b).build();
  EqualShare link;
  const TaskTimes times = simulate(g.graph, g.durations, {.progress = &link}).times;
  CHECK(times.finish[a.value] == Time::us(20));
  CHECK(times.finish[b.value] == Time::us(40));
  CHECK(times.start[after.value] == Time::us(20));
}

TEST_CASE("engine: an external task of a shared class slows its device down and is not slowed itself") {
  TwoStreams two;
  const auto external = static_cast<ResourceClass>(kExternalProgress + kNetwork);
  const TaskId a = two.b.add({.stream = two.compute, .duration = Time::us(30), .resource = kCompute});
  const TaskId b = two.b.add({.stream = two.network, .duration = Time::us(30), .resource = external});
  const BuiltGraph g = std::move(two.b).build();
  const SlowdownTable slow = table(1.5, 3.0);
  EqualShare link;
  const TaskTimes times = simulate(g.graph, g.durations, {.slowdown = &slow, .progress = &link}).times;
  CHECK(times.finish[b.value] == Time::us(30));
  CHECK(times.finish[a.value] == Time::us(40));  // 20 of 30 us of work beside the transfer, the rest at full speed
}

TEST_CASE("engine: an external task without a progress model, or one that never ends, is an internal error") {
  struct Never final : ProgressModel {
    void start(TaskId, Time, Time) override {}
    Time next_completion() override { return Time::max(); }
    void advance(Time, std::vector<TaskId>&) override {}
  } never;
  TwoStreams two;
  two.b.add({.stream = two.compute, .duration = Time::us(10), .resource = kExternalProgress});
  const BuiltGraph g = std::move(two.b).build();
  CHECK_THROWS_AS(simulate(g.graph, g.durations), InternalError);
  CHECK_THROWS_AS(simulate(g.graph, g.durations, {.progress = &never}), InternalError);
}

TEST_CASE("engine: a deadlock names the same cycle as the longest path") {
  TwoStreams two;
  const TaskId a1 = two.b.add(two.compute, 0, Time::us(1)), a2 = two.b.add(two.compute, 0, Time::us(1));
  const TaskId c1 = two.b.add(two.network, 0, Time::us(1)), c2 = two.b.add(two.network, 0, Time::us(1));
  two.b.depend(c2, a1);
  two.b.depend(a2, c1);
  const BuiltGraph g = std::move(two.b).build();
  try {
    simulate(g.graph, g.durations);
    FAIL("no cycle reported");
  } catch (const CycleError& e) {
    CHECK(e.tasks() == std::vector<TaskId>{a1, a2, c1, c2});
  }
}

TEST_CASE("slowdown: progress in the time that work takes is exactly that work") {
  for (double factor : {1.0, 1.0000001, 1.1, 1.37, 2.0, 17.3, 1024.0}) {
    const std::int64_t f = table(factor, 1.0).factor(kCompute, 1U << kNetwork);
    for (std::int64_t work : {0LL, 1LL, 2LL, 999LL, 123'456'789LL, 3'600'000'000'000'000LL}) {
      const Time wall = SlowdownTable::time_for(Time::ps(work), f);
      CHECK(SlowdownTable::progress(wall, f) == Time::ps(work));
      CHECK(wall >= Time::ps(work));
      if (work > 0) CHECK(SlowdownTable::progress(wall - Time::ps(1), f) < Time::ps(work));
    }
  }
}

TEST_CASE("slowdown: factors of several active classes multiply; out-of-range factors are refused") {
  SlowdownMatrix m = no_slowdown();
  m[1][2] = 1.5;
  m[1][3] = 2.0;
  m[1][1] = 4.0;
  const SlowdownTable t(m);
  CHECK(t.factor(1, 0b1100) == 3 * SlowdownTable::kUnit);
  CHECK(t.factor(1, 0b1110) == 12 * SlowdownTable::kUnit);
  CHECK(t.factor(2, 0b1110) == SlowdownTable::kUnit);
  CHECK(!t.trivial());
  CHECK(SlowdownTable().trivial());
  m[2][1] = 0.5;
  CHECK_THROWS_AS(SlowdownTable{m}, InternalError);
}

}  // namespace
}  // namespace k3sim
