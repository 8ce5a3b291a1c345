// The same run gives the same fingerprint on every machine, in every thread and however often it is repeated.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "sim/engine/engine.h"
#include "tests/property/sim/cluster_graph.h"

namespace k3sim {
namespace {

std::uint64_t run_once() {
  const BuiltGraph g = testing::cluster_graph({.dp = 2, .pp = 4, .tp = 4, .micro_batches = 8, .seed = 42});
  SlowdownMatrix m = no_slowdown();
  m[1][2] = 1.37;
  m[2][1] = 1.11;
  const SlowdownTable table(m);
  FingerprintObserver seen(g.graph);
  simulate(g.graph, g.durations, {.slowdown = &table, .observer = &seen});
  return seen.value();
}

TEST_CASE("reproducible: a slowed run has the fingerprint recorded once and for all") {
  CHECK(run_once() == 793041316411692075ULL);
}

TEST_CASE("reproducible: runs in parallel threads do not disturb each other") {
  std::vector<std::uint64_t> values(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& v : values) threads.emplace_back([&v] { v = run_once(); });
  for (std::thread& t : threads) t.join();
  for (std::uint64_t v : values) CHECK(v == values[0]);
}

}  // namespace
}  // namespace k3sim
