// Folded and unfolded runs agree to the picosecond, task by task, with both evaluators, on clusters of at most 64
// ranks: symmetric ones, ones with a straggler, ones with a shared barrier, and random graphs without any symmetry.
#include <doctest/doctest.h>

#include <numeric>

#include "sim/base/check.h"
#include "sim/engine/engine.h"
#include "sim/graph/fold_graph.h"
#include "tests/property/sim/cluster_graph.h"

namespace k3sim {
namespace {

using testing::cluster_graph;
using testing::ClusterSpec;

const std::vector<ClusterSpec>& clusters() {
  static const std::vector<ClusterSpec> list = {
      {.dp = 1, .pp = 1, .tp = 1},  {.dp = 64, .pp = 1, .tp = 1}, {.dp = 1, .pp = 64, .tp = 1},
      {.dp = 1, .pp = 1, .tp = 64}, {.dp = 2, .pp = 4, .tp = 8},  {.dp = 4, .pp = 4, .tp = 4},
      {.dp = 8, .pp = 2, .tp = 4},  {.dp = 3, .pp = 5, .tp = 2},  {.dp = 7, .pp = 3, .tp = 3},
      {.dp = 16, .pp = 2, .tp = 2}, {.dp = 2, .pp = 16, .tp = 2}, {.dp = 5, .pp = 1, .tp = 8},
      {.dp = 1, .pp = 8, .tp = 8},  {.dp = 6, .pp = 6, .tp = 1},  {.dp = 2, .pp = 2, .tp = 16},
      {.dp = 32, .pp = 2, .tp = 1}};
  return list;
}

SlowdownTable slow_compute() {
  SlowdownMatrix m = no_slowdown();
  m[1][2] = 1.31;
  m[2][1] = 1.07;
  return SlowdownTable(m);
}

// Returns the number of classes.
std::size_t check_fold(const BuiltGraph& full) {
  const RankDescription ranks = describe_ranks(full.graph, full.durations);
  const Folding folding = fold(ranks);
  REQUIRE(check_folding(folding, ranks).empty());
  REQUIRE(std::accumulate(folding.multiplicity.begin(), folding.multiplicity.end(), 0UL) == ranks.signatures.size());
  const FoldedGraph folded = fold_graph(full.graph, full.durations, folding);
  const BuiltGraph& small = folded.built;

  const TaskTimes path = longest_path(full.graph, full.durations);
  const TaskTimes path_unfolded = unfold(folded, longest_path(small.graph, small.durations));
  REQUIRE(path.makespan == path_unfolded.makespan);
  REQUIRE(path.start == path_unfolded.start);

  const SlowdownTable slow = slow_compute();
  const TaskTimes events = simulate(full.graph, full.durations, {.slowdown = &slow}).times;
  const TaskTimes few_events = unfold(folded, simulate(small.graph, small.durations, {.slowdown = &slow}).times);
  REQUIRE(events.makespan == few_events.makespan);
  REQUIRE(events.start == few_events.start);
  REQUIRE(events.finish == few_events.finish);
  REQUIRE(event_fingerprint(full.graph, events) == event_fingerprint(full.graph, few_events));
  return folding.representative.size();
}

TEST_CASE("folding: symmetric clusters fold to one rank per stage and agree with the full run") {
  REQUIRE(clusters().size() >= 12);
  for (ClusterSpec spec : clusters()) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      spec.seed = seed;
      REQUIRE(check_fold(cluster_graph(spec)) == spec.pp);
    }
  }
}

TEST_CASE("folding: a straggler unfolds what it touches and nothing is lost") {
  for (ClusterSpec spec : clusters()) {
    const std::uint32_t ranks = spec.dp * spec.pp * spec.tp;
    spec.straggler = ranks / 2;
    const std::size_t classes = check_fold(cluster_graph(spec));
    if (ranks > spec.pp) CHECK(classes > spec.pp);
    if (spec.tp > 2) CHECK(classes < ranks);  // the other shards of its group stay interchangeable
  }
}

TEST_CASE("folding: a barrier that belongs to no rank is one class of its own") {
  for (ClusterSpec spec : clusters()) {
    spec.shared_barrier = true;
    CHECK(check_fold(cluster_graph(spec)) == spec.pp + 1);
  }
}

TEST_CASE("folding: graphs without symmetry survive folding unchanged") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) check_fold(testing::random_graph({.seed = seed, .classes = 2}));
}

TEST_CASE("folding: an invalid partition is named and refused") {
  const BuiltGraph full = cluster_graph({.dp = 2, .pp = 2, .tp = 1, .straggler = 3});
  const std::vector<std::uint64_t> by_stage = {0, 0, 1, 1};
  const Folding wrong = folding_from_labels(by_stage);
  const auto violations = check_folding(wrong, describe_ranks(full.graph, full.durations));
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].what == "rank 3 has other costs than rank 2");
  CHECK_THROWS_AS(fold_graph(full.graph, full.durations, wrong), InternalError);
}

}  // namespace
}  // namespace k3sim
