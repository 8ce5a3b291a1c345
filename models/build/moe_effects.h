// What routing and dispatcher do to a step. Layers differ by their draws (moe_draws.h); `MoeEffects` itself is the mean
// over all draws of the slowest rank, which serves where one number has to stand for all layers: cutting the model into
// stages, sizing buffers, searching. A single balanced draw stands for balanced routing.
// Source: k3-facts 3.3, 3.7; engine-design section 7 (ep). Valid for ep dividing the experts.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/build/moe_draws.h"
#include "models/build/placement.h"
#include "models/config/scenario.h"

namespace k3sim {

struct MoeEffects {
  bool present = false;
  double dispatch_ratio = 1.0, combine_ratio = 1.0;  // slowest rank over balanced
  double row_ratio = 1.0;                            // rows in the busiest rank's grouped GEMM over balanced
  Time plan;                                         // before a forward's dispatch
  Time replicate;                                    // weight push before the experts run, forward and backward
  Time gradient_return;                              // off the critical path
  RoutedTraffic traffic;
  Bytes buffers, pool, memory_per_layer;  // one set of buffers and pool per rank
  int host_syncs = 0;
  int sms = 0;
  bool dynamic_shapes = false;
  double replicas_mean = 0, replicas_max = 0, max_violation = 0;
  std::int64_t dropped_rows = 0;
  std::shared_ptr<const MoeDraws> draws;  // null for balanced routing

  // These effects with the times of one draw, of its slowest rank.
  MoeEffects of(const MoeDraw& draw) const;
};

MoeEffects moe_effects(const Scenario& scenario, const Machine& machine, const Placement& placement,
                       std::int64_t tokens);

// Remembers effects by everything they depend on: layouts that differ elsewhere share one draw. Thread-safe.
class MoeEffectsCache {
 public:
  const MoeEffects& get(const Scenario& scenario, const Machine& machine, const Placement& placement,
                        std::int64_t tokens);

 private:
  struct Inputs {
    std::vector<int> layers;  // with experts: every one has draws of its own
    FfnSpec ffn;
    std::int64_t hidden = 0;
    MoeConfig config;
    int ep = 1, domain_ranks = 1;
    std::int64_t tokens = 0;
    std::string rates;
    double imbalance = 1.0;
    bool operator==(const Inputs&) const = default;
  };
  struct Entry {
    Inputs inputs;
    std::once_flag once;
    MoeEffects effects;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // addresses stay valid
};

}  // namespace k3sim
