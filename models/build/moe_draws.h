// Draws of the routing: what the dispatcher makes of one MoE layer in one micro-batch, for every expert-parallel rank.
// A step has (layers x micro-batches) of them; the first `micro_batches` of every layer are drawn and then repeat, so
// that a draw costs milliseconds and not the step minutes. Keyed by (seed, layer, micro-batch): the same for any number
// of threads and in any order. Expert-data-parallel groups meet only at the end of the step and share their draws.
// Source: k3-facts 3.3, 3.7; issue of the MoE model ("effects reach the step"). Valid for ep dividing the experts.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

// One expert-parallel rank in one draw.
struct EpRankLoad {
  double row_ratio = 1.0;          // padded rows over those of balanced routing
  std::int64_t rows = 0;           // real rows
  std::vector<double> group_rows;  // of its experts that have any: own ones, then replicas
  int replicas_received = 0, replicas_sent = 0;
  Bytes nvlink_sent, rdma_sent;  // dispatch
};

// What an exchange moves, in the mean over the ranks: bytes that leave a rank over those of balanced routing, and the
// weights that it pushes before its rows.
struct RoutedTraffic {
  double dispatch_network = 1.0, dispatch_nvlink = 1.0, combine_network = 1.0, combine_nvlink = 1.0;
  double replica_network = 0, replica_nvlink = 0;  // bytes
};

struct MoeDraw {
  double dispatch_ratio = 1.0, combine_ratio = 1.0;  // slowest rank over balanced
  Time plan, replicate, gradient_return;             // before the rows move; largest sender; off the critical path
  RoutedTraffic traffic;
  double max_violation = 0;
  std::int64_t dropped_rows = 0;
  Bytes buffer;
  std::vector<EpRankLoad> ranks;
  std::vector<std::int64_t> expert_rows;  // tokens per expert
  std::size_t busiest = 0;                // rank with most padded rows

  double largest_ratio() const { return ranks[busiest].row_ratio; }
  bool stragglers() const;  // ranks differ by more than a remainder row
};

class MoeDraws {
 public:
  MoeDraws(std::vector<int> layers, int micro_batches) : layers_(std::move(layers)), micro_batches_(micro_batches) {}

  // Decoder layers that have draws of their own, ascending; others repeat them.
  const std::vector<int>& layers() const { return layers_; }
  int micro_batches() const { return micro_batches_; }
  // Draws by layer, then micro-batch, in the order of layers().
  std::vector<MoeDraw> draws;

  // Decoder layer of the model; micro-batch of one data-parallel rank.
  const MoeDraw& at(int layer, int micro_batch) const { return draws[index(layer, micro_batch)]; }
  std::size_t index(int layer, int micro_batch) const;
  bool stragglers() const;

 private:
  std::vector<int> layers_;
  int micro_batches_;
};

}  // namespace k3sim
