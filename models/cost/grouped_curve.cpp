// Products of many experts in one launch, persistent CUTLASS kernels with clusters of two tiles along the rows:
//   forward, dgrad: tile 64 x 128 up to 128 rows per group on average, else 128 x 256; each group is padded to 2 tiles;
//     pairs = sum_g ceil(c_g / 2a) ceil(n / b),  compute = ceil(pairs / (SMs/2)) x time of a pair
//   wgrad: 128 x 256 tiles of every [n, k] result, reduction over the c_g rows of the group, work spread evenly
//   t = fixed + group_us G + throttle((compute^q + memory^q)^(1/q)), memory = bytes / bw (own rate when most groups
//     fill only half a cluster, and for weight gradients)
//   choose_tile (K3's workload-aware scheduler, k3-facts 3.10): the cheaper of both tiles by this model and the actual
//     group sizes, instead of by their mean
// Source: PyTorch aten/src/ATen/native/cuda/GroupMM.cu (tile choice, cluster shape); hardware notes 5.2; own fit to
// 112 H200 rows with 4 to 56 groups of 32 to 4096 rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/cost/curve.h"
#include "models/cost/group_sizes.h"

namespace k3sim {

namespace {

constexpr double kSmallGroup = 128;

class GroupedTilesCurve final : public Curve {
 public:
  explicit GroupedTilesCurve(const CostCurve& c)
      : sms_(c.at("sms")),
        fixed_(c.at("fixed_us")),
        group_(c.at("group_us")),
        rate_(c.at("rate_peak") * 1e6),
        small_(c.at("tile_small")),
        hbm_(c.at("bw_hbm") * 1e6),
        hbm_sparse_(c.at("bw_sparse") * 1e6),
        hbm_wgrad_(c.at("bw_wgrad") * 1e6),
        epilogue_(c.at("bw_epilogue") * 1e6),
        blend_(c.at("blend")),
        tile_us_(c.at("sm_tile_us")),
        throttle_(c) {}

  double microseconds(const Kernel& k) const override {
    const std::vector<double> sizes = sizes_of(k);
    double compute = 0, bandwidth = hbm_wgrad_;
    if (k.pass == Pass::weight_grad) {
      compute = weight_gradient(sizes, k);
    } else {
      const bool forward = k.pass == Pass::forward;
      const double mean = static_cast<double>(k.m) / static_cast<double>(k.groups);
      const auto sparse = std::count_if(sizes.begin(), sizes.end(), [](double c) { return c <= 64.0; });
      const bool small = mean <= kSmallGroup;
      bandwidth = small && 2 * sparse > k.groups ? hbm_sparse_ : hbm_;
      const double n = static_cast<double>(forward ? k.n : k.k), depth = static_cast<double>(forward ? k.k : k.n);
      compute = rows_times_weights(sizes, n, depth, small);
      if (k.choose_tile) compute = std::min(compute, rows_times_weights(sizes, n, depth, !small));
    }
    const double memory = k.bytes.as_double() / bandwidth;
    const double high = std::max(compute, memory), low = std::min(compute, memory);
    const double t = high * std::pow(1.0 + std::pow(low / high, blend_), 1.0 / blend_);
    return fixed_ + group_ * static_cast<double>(k.groups) + throttle_(t);
  }

 private:
  static std::vector<double> sizes_of(const Kernel& k) {
    if (k.group_rows == nullptr) return group_sizes(k.groups, k.m, k.largest_group);
    std::vector<double> sizes = *k.group_rows;
    const double scale = static_cast<double>(k.m) / std::accumulate(sizes.begin(), sizes.end(), 0.0);
    for (double& c : sizes) c *= scale;
    return sizes;
  }

  double rows_times_weights(const std::vector<double>& sizes, double n, double k, bool small) const {
    const double a = small ? 64 : 128, b = small ? 128 : 256, clusters = sms_ / 2;
    double pairs = 0;
    for (const double c : sizes) pairs += std::ceil(c / (2 * a)) * std::ceil(n / b);
    const double area = 2.0 * 2 * a * b;
    const double rate = rate_ * (small ? small_ : 1.0) / clusters;
    const double one = area * k / rate + area * std::min(pairs, clusters) / epilogue_;
    return std::ceil(pairs / clusters) * one;
  }

  double weight_gradient(const std::vector<double>& sizes, const Kernel& k) const {
    const double area = 2.0 * 128 * 256;
    const double tiles = 2 * std::ceil(static_cast<double>(k.n) / 256) * std::ceil(static_cast<double>(k.k) / 256);
    double work = 0;
    for (const double c : sizes)
      work += tiles * (area * std::ceil(c / 64) * 64 * sms_ / rate_ + area * sms_ / epilogue_ + tile_us_);
    const double all = tiles * static_cast<double>(sizes.size());
    return work * std::ceil(all / sms_) / all;
  }

  double sms_, fixed_, group_, rate_, small_, hbm_, hbm_sparse_, hbm_wgrad_, epilogue_, blend_, tile_us_;
  Throttle throttle_;
};

}  // namespace

std::unique_ptr<const Curve> make_grouped_tiles_curve(const CostCurve& curve) {
  return std::make_unique<GroupedTilesCurve>(curve);
}

}  // namespace k3sim
