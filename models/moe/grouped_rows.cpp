// Padding and launch choice of the grouped GEMM: count output tiles per group, round up to waves, compare candidates.
// Source: k3-facts section 3.10.
// Valid for persistent kernels that hand out output tiles to SMs in order.
#include "models/moe/grouped_rows.h"

#include "sim/base/check.h"

namespace k3sim {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<std::int64_t> grouped_rows(std::span<const std::int64_t> local_counts, int pad_rows) {
  CS_CHECK(pad_rows > 0, "padding to {} rows", pad_rows);
  std::vector<std::int64_t> padded;
  padded.reserve(local_counts.size());
  for (const std::int64_t rows : local_counts) padded.push_back(ceil_div(rows, pad_rows) * pad_rows);
  return padded;
}

GroupedLaunch launch_cost(std::span<const std::int64_t> rows, std::int64_t n, int sms, const GemmTile& tile) {
  CS_CHECK(n > 0 && sms > 0 && tile.m > 0 && tile.n > 0 && tile.efficiency > 0, "tile {} x {} on {} SMs", tile.m,
           tile.n, sms);
  GroupedLaunch launch;
  launch.tile = tile;
  std::int64_t real = 0;
  for (const std::int64_t r : rows) {
    launch.tiles += ceil_div(r, tile.m) * ceil_div(n, tile.n);
    real += r;
  }
  launch.waves = ceil_div(launch.tiles, sms);
  const double work = static_cast<double>(launch.waves) * sms * tile.m * tile.n / tile.efficiency;
  launch.relative_time = real == 0 ? 0.0 : work / (static_cast<double>(real) * static_cast<double>(n));
  return launch;
}

GroupedLaunch choose_launch(std::span<const std::int64_t> rows, std::int64_t n, int sms,
                            std::span<const GemmTile> candidates) {
  CS_CHECK(!candidates.empty(), "no tile shapes to choose from");
  GroupedLaunch best = launch_cost(rows, n, sms, candidates.front());
  for (const GemmTile& tile : candidates.subspan(1)) {
    const GroupedLaunch launch = launch_cost(rows, n, sms, tile);
    if (launch.relative_time < best.relative_time) best = launch;
  }
  return best;
}

}  // namespace k3sim
