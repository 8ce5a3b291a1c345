// Symmetric clusters for folding tests: dp replicas x pp stages x tp shards; every shard runs 1F1B-like passes, each
// pass ends in an exchange among the tp shards on a second stream, and after the last pass the replicas of a shard run
// a ring. Ranks are numbered tp first, then dp, then pp. Stages differ in cost; `straggler` makes one rank differ from
// all.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/graph_builder.h"
#include "tests/property/sim/random_graph.h"

namespace k3sim::testing {

struct ClusterSpec {
  std::uint32_t dp = 1, pp = 1, tp = 1;
  std::uint32_t micro_batches = 4;
  std::uint64_t seed = 0;
  std::uint32_t straggler = ~0U;  // rank whose passes take longer
  bool shared_barrier = false;    // all ranks meet in one task of a stream that belongs to no rank
};

class ClusterGraph {
 public:
  explicit ClusterGraph(const ClusterSpec& spec) : spec_(spec), ranks_(spec.dp * spec.pp * spec.tp) {}

  BuiltGraph build() {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      compute_.push_back(b_.add_stream({RankId(std::size_t{r}), 0}));
      network_.push_back(b_.add_stream({RankId(std::size_t{r}), 1}));
    }
    for (std::uint32_t m = 0; m < spec_.micro_batches; ++m) add_pass(0, false);
    for (std::uint32_t m = 0; m < spec_.micro_batches; ++m) add_pass(1, true);
    if (spec_.dp > 1) add_rings();
    if (spec_.shared_barrier) add_barrier();
    return std::move(b_).build();
  }

 private:
  std::uint32_t rank(std::uint32_t stage, std::uint32_t replica, std::uint32_t shard) const {
    return (stage * spec_.dp + replica) * spec_.tp + shard;
  }

  // One pass on all ranks: compute, exchange among the shards, hand-over to the next (or previous) stage.
  void add_pass(TaskKind kind, bool backward) {
    std::vector<TaskId> compute(ranks_), exchange(ranks_);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      Dice dice(spec_.seed + kind, r / (spec_.dp * spec_.tp));  // the cost belongs to the stage
      const Time extra = r == spec_.straggler ? Time::ns(700) : Time();
      const Time work = Time::ps(1 + dice.below(3'000'000)) + extra, bytes = Time::ps(dice.below(900'000));
      compute[r] = b_.add({.stream = compute_[r], .kind = kind, .duration = work, .tag = r, .resource = 1});
      exchange[r] = b_.add({.stream = network_[r], .kind = 2, .duration = bytes, .tag = r, .resource = 2});
    }
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const std::uint32_t group = r / spec_.tp * spec_.tp;
      for (std::uint32_t peer = group; peer < group + spec_.tp; ++peer) b_.depend(compute[peer], exchange[r]);
    }
    const std::uint32_t per_stage = spec_.dp * spec_.tp;
    for (std::uint32_t r = 0; r + per_stage < ranks_; ++r) {
      if (backward) b_.depend(exchange[r + per_stage], compute[r]);
      if (!backward) b_.depend(exchange[r], compute[r + per_stage]);
    }
  }

  // Each step of a ring receives from the neighbour's previous step.
  void add_rings() {
    std::vector<TaskId> before;
    for (std::uint32_t step = 0; step < spec_.dp; ++step) {
      std::vector<TaskId> now(ranks_);
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        now[r] = b_.add({.stream = network_[r], .kind = 3, .duration = Time::ns(300), .tag = r, .resource = 2});
      }
      for (std::uint32_t r = 0; step > 0 && r < ranks_; ++r) {
        const std::uint32_t shard = r % spec_.tp, replica = r / spec_.tp % spec_.dp, stage = r / spec_.tp / spec_.dp;
        b_.depend(before[rank(stage, (replica + 1) % spec_.dp, shard)], now[r]);
      }
      before = now;
    }
  }

  void add_barrier() {
    const StreamId nobody = b_.add_stream({});
    const TaskId barrier = b_.add(nobody, 4, Time::ns(50));
    for (std::uint32_t r = 0; r < ranks_; ++r) b_.depend(b_.add(network_[r], 5, Time::ns(10)), barrier);
    for (std::uint32_t r = 0; r < ranks_; ++r) b_.depend(barrier, b_.add(compute_[r], 6, Time::ns(20)));
  }

  ClusterSpec spec_;
  std::uint32_t ranks_;
  GraphBuilder b_;
  std::vector<StreamId> compute_, network_;
};

inline BuiltGraph cluster_graph(const ClusterSpec& spec) {
  return ClusterGraph(spec).build();
}

}  // namespace k3sim::testing
