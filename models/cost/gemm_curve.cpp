// Dense matrix products: the library picks the cheapest tile a x b and split s of the reduction.
//   waves   = ceil(tiles s / SMs)
//   compute = waves (2 a b (k/s) SMs / (rate e_tile) + 2 a b active / bw_epilogue)     main loop, write-back of a tile
//   memory  = (bytes + split traffic) / bw_hbm
//   t       = fixed + throttle(pass factor (min over (tile, s) of (compute^q + memory^q)^(1/q) + split_us [s > 1]))
// Dimensions of the result (m, n) and of the reduction k by pass: forward [M,N] over K, dgrad [M,K] over N, wgrad [N,K]
// over M. Tiles of 128 x 192 and more reach rate, 128 x 128 tile_medium of it, smaller ones tile_small of that again.
// Source: hardware notes 5.1 (tile choices, split-K); own fit to 209 H200 rows. Valid from microseconds to 10 ms.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/cost/curve.h"

namespace k3sim {

namespace {

struct Tile {
  int m, n;
};
constexpr std::array<Tile, 10> kTiles{
    {{128, 256}, {256, 128}, {192, 128}, {128, 192}, {128, 128}, {64, 256}, {256, 64}, {128, 64}, {64, 128}, {64, 64}}};
constexpr std::array<int, 4> kSplits{1, 2, 4, 8};

struct Dims {
  double m, n, k;
};

Dims result_dims(const Kernel& k) {
  const double m = static_cast<double>(k.m), n = static_cast<double>(k.n), r = static_cast<double>(k.k);
  switch (k.pass) {
    case Pass::input_grad:
      return {m, r, n};
    case Pass::weight_grad:
      return {n, r, m};
    case Pass::forward:
      break;
  }
  return {m, n, r};
}

class TilesCurve final : public Curve {
 public:
  explicit TilesCurve(const CostCurve& c)
      : sms_(c.at("sms")),
        fixed_(c.at("fixed_us")),
        rate_(c.at("rate_peak") * 1e6),
        hbm_(c.at("bw_hbm") * 1e6),
        epilogue_(c.at("bw_epilogue") * 1e6),
        blend_(c.at("blend")),
        medium_(c.at("tile_medium")),
        small_(c.at("tile_small")),
        split_us_(c.at("split_us")),
        split_traffic_(c.at("split_traffic")),
        dgrad_(c.at("dgrad")),
        wgrad_(c.at("wgrad")),
        throttle_(c) {}

  double microseconds(const Kernel& k) const override {
    const Dims d = result_dims(k);
    double best = 1e300;
    for (const Tile& tile : kTiles)
      for (const int split : kSplits) best = std::min(best, candidate(d, k.bytes.as_double(), tile, split, best));
    return fixed_ + throttle_(best * pass_factor(k.pass));
  }

 private:
  double pass_factor(Pass p) const { return p == Pass::forward ? 1.0 : p == Pass::input_grad ? dgrad_ : wgrad_; }

  double efficiency(const Tile& t) const {
    const int area = t.m * t.n;
    if (area >= 128 * 192) return 1.0;
    if (area >= 128 * 128) return medium_;
    return area >= 64 * 128 ? medium_ * small_ : medium_ * small_ * small_;
  }

  // Returns `bound` at once when this choice cannot be better.
  double candidate(const Dims& d, double bytes, const Tile& t, int split, double bound) const {
    const double tiles = std::ceil(d.m / t.m) * std::ceil(d.n / t.n) * split;
    const double area = 2.0 * t.m * t.n;
    const double active = std::min(tiles, sms_);
    const double one = area * (d.k / split) * sms_ / (rate_ * efficiency(t)) + area * active / epilogue_;
    const double compute = std::ceil(tiles / sms_) * one;
    const double extra = split > 1 ? split_traffic_ * 8.0 * d.m * d.n * split : 0.0;
    const double memory = (bytes + extra) / hbm_;
    const double high = std::max(compute, memory), low = std::min(compute, memory);
    const double added = split > 1 ? split_us_ : 0.0;
    if (high + added >= bound) return bound;
    return high * std::pow(1.0 + std::pow(low / high, blend_), 1.0 / blend_) + added;
  }

  double sms_, fixed_, rate_, hbm_, epilogue_, blend_, medium_, small_, split_us_, split_traffic_, dgrad_, wgrad_;
  Throttle throttle_;
};

}  // namespace

std::unique_ptr<const Curve> make_tiles_curve(const CostCurve& curve) {
  return std::make_unique<TilesCurve>(curve);
}

}  // namespace k3sim
