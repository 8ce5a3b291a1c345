// Random acyclic task graphs for property tests: random streams, edges, kinds and durations (a third of them zero, many
// equal, so that ties are common). Edges run forward in insertion order, hence no cycles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/rng.h"
#include "sim/graph/graph_builder.h"

namespace k3sim::testing {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t entity) : key_{seed, 0x7e57, entity} {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_below(key_, index_++, n)); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

 private:
  RandomKey key_;
  std::uint64_t index_ = 0;
};

struct RandomGraphSpec {
  std::uint64_t seed = 0;
  bool shuffle_edges = false;   // same edges, added in another order
  ResourceClass classes = 0;    // tasks get a resource class in [0, classes]
  bool external_tasks = false;  // some tasks belong to a progress model
};

inline Time random_duration(Dice& dice) {
  if (dice.chance(33)) return Time();
  return dice.chance(50) ? Time::ns(1 + dice.below(4)) : Time::ps(1 + dice.below(5'000'000));
}

inline BuiltGraph random_graph(const RandomGraphSpec& spec) {
  Dice dice(spec.seed, 1);
  GraphBuilder b;
  const std::uint32_t ranks = 1 + dice.below(5), streams = 1 + dice.below(12), tasks = dice.below(80);
  for (std::uint32_t s = 0; s < streams; ++s) b.add_stream({RankId(dice.below(ranks)), 0});
  for (std::uint32_t t = 0; t < tasks; ++t) {
    ResourceClass resource = spec.classes == 0 ? kExclusive : static_cast<ResourceClass>(dice.below(spec.classes + 1U));
    if (spec.external_tasks && dice.chance(20)) resource = kExternalProgress;
    b.add({.stream = StreamId(dice.below(streams)),
           .kind = static_cast<TaskKind>(dice.below(6)),
           .duration = random_duration(dice),
           .tag = t,
           .resource = resource});
  }
  std::vector<std::pair<TaskId, TaskId>> edges;
  const std::uint32_t edge_count = tasks < 2 ? 0 : dice.below(3 * tasks);
  for (std::uint32_t e = 0; e < edge_count; ++e) {
    const std::uint32_t after = 1 + dice.below(tasks - 1);
    edges.emplace_back(TaskId(dice.below(after)), TaskId(after));
  }
  if (spec.shuffle_edges) {
    Dice shuffle(spec.seed, 2);
    for (std::size_t i = edges.size(); i > 1; --i) {
      std::swap(edges[i - 1], edges[shuffle.below(static_cast<std::uint32_t>(i))]);
    }
  }
  for (const auto& [before, after] : edges) b.depend(before, after);
  return std::move(b).build();
}

}  // namespace k3sim::testing
