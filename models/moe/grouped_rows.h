// Rows that the grouped GEMM works through: every non-empty expert is padded to a multiple of `pad_rows`. And K3's
// workload-aware choice of the launch parameters from the actual group sizes, against a fixed choice.
//   waves(tile) = ceil(sum_g ceil(rows_g / tile_m) ceil(n / tile_n) / SMs);  cost = waves * tile_m * tile_n /
//   efficiency
// Source: k3-facts section 3.10 (scheduler: parameters picked before launch by an analytical model; coefficients not
// published), hardware section 5.2 (alignment 128 on Hopper). Tile efficiencies are parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace k3sim {

std::vector<std::int64_t> grouped_rows(std::span<const std::int64_t> local_counts, int pad_rows = 128);

struct GemmTile {
  int m = 128;
  int n = 256;
  double efficiency = 1.0;  // share of the peak that a full wave of this tile reaches
  friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

struct GroupedLaunch {
  GemmTile tile;
  std::int64_t tiles = 0;
  std::int64_t waves = 0;
  double relative_time = 0;  // 1: all SMs busy on real rows at efficiency 1
};

// Cost of one tile shape for these groups. Requires: n > 0, sms > 0.
GroupedLaunch launch_cost(std::span<const std::int64_t> rows, std::int64_t n, int sms, const GemmTile& tile);
// The cheapest of the candidates; ties go to the earlier one. Requires: at least one candidate.
GroupedLaunch choose_launch(std::span<const std::int64_t> rows, std::int64_t n, int sms,
                            std::span<const GemmTile> candidates);

}  // namespace k3sim
