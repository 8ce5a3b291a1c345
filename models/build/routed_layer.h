// Passes of MoE layers for single draws of the routing. A layer's balanced passes stand for all its instances but for
// the items that follow the routing; those are timed again with the draw's loads:
//   exchanges        slowest rank of the draw (every rank receives from all senders), largest weight push before it
//   expert kernels   rows and group sizes of one expert-parallel rank: its own where that rank is simulated (unfolded),
//   the
//                    busiest one's where one rank stands for all. The combine waits for the busiest rank, and what
//                    ranks do between two exchanges differs in nothing else, so both give the same step but for kernels
//                    whose time does not follow the rows (tests/property/models/build/routing_step_test.cpp).
// Source: k3-facts 3.6, 3.7; engine-design section 7 (ep). Valid for layers of one plan.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "models/build/chunks.h"
#include "models/build/layer_timing.h"

namespace k3sim {

// The busiest rank of each draw.
constexpr int kBusiestRank = -1;

// Not for several threads.
class LayerRouter {
 public:
  // `comm` prices exchanges without routing effects; effects and options are those the layers were timed with.
  LayerRouter(const MoeEffects& effects, const TimingOptions& options, const Machine& machine, const CommCoster& comm)
      : effects_(effects), options_(options), machine_(machine), comm_(comm) {}

  TimedPasses passes(const TimedLayer& layer, const MoeDraw& draw, int ep_rank);
  // Every item with its least time over all draws and busiest ranks.
  TimedPasses least(const TimedLayer& layer);

 private:
  // Layers that differ only around their experts (attention, AttnRes rows, recompute) share what routing changes.
  struct RoutedWork {
    std::vector<Item> items;
    std::map<std::pair<const MoeDraw*, int>, std::vector<TimedItem>> loaded;  // by draw and expert-parallel rank
    std::vector<TimedItem> least;
  };
  RoutedWork& work_of(const TimedLayer& layer);
  std::vector<TimedItem> loaded_items(const std::vector<Item>& items, const MoeDraw& draw, int ep_rank) const;
  Kernel loaded(const Kernel& kernel, const EpRankLoad& load) const;

  const MoeEffects& effects_;
  const TimingOptions& options_;
  const Machine& machine_;
  const CommCoster& comm_;
  std::deque<RoutedWork> known_;
};

// Passes by instance, made when first asked for. Not for several threads.
class RoutedPasses {
 public:
  RoutedPasses(const LayerSet& layers, const Machine& machine, const CommCoster& comm);

  // The passes of `part` in micro-batch `micro_batch` on an expert-parallel rank or kBusiestRank; those of the part
  // itself when routing is balanced or the part has no experts.
  const TimedPasses& of(const ChunkPart& part, int micro_batch, int ep_rank);

 private:
  const MoeEffects& effects_;
  LayerRouter router_;
  std::map<std::tuple<const TimedLayer*, std::size_t, int>, std::unique_ptr<TimedPasses>> made_;
};

}  // namespace k3sim
