// Softmax attention core, any FlashAttention-like kernel:
//   t = fixed + throttle(F / rate (1 + half_keys / keys) (1 + softmax_dims / (d_qk + d_v))
//                        (1 + uneven |d_qk - d_v| / (d_qk + d_v)) / fill)
// softmax_dims: the exponentials of a pair cost as much as this many dimensions of products (small heads lose most).
// keys: keys that a query sees on average (half the sequence when causal), so short sequences lose the same share in
// causal and full attention; fill: query blocks of 128 rows over the SMs, for grids that do not fill the GPU.
// Source: hardware notes 5.3 (rate = R / (1 + c / s), fill), own fit to cuDNN and FlashAttention-2 on H200.
#include <algorithm>
#include <cmath>

#include "models/cost/curve.h"

namespace k3sim {

namespace {

class AttentionCurve final : public Curve {
 public:
  explicit AttentionCurve(const CostCurve& c)
      : sms_(c.at("sms")),
        fixed_(c.at("fixed_us")),
        rate_(c.at("rate_peak") * 1e6),
        half_keys_(c.at("half_keys")),
        softmax_(c.at("softmax_dims")),
        uneven_(c.at("uneven")),
        throttle_(c) {}

  double microseconds(const Kernel& k) const override {
    constexpr double kBackwardFlops = 2.5, kBlock = 128;
    const double sum = static_cast<double>(k.dim_qk + k.dim_v);
    const double queries = static_cast<double>(k.batch * k.heads * k.seq_q);
    const double forward = k.flops.value() / (k.pass == Pass::forward ? 1.0 : kBackwardFlops);
    const double keys = std::max(1.0, forward / (2.0 * queries * sum));
    const double uneven = 1.0 + uneven_ * std::abs(static_cast<double>(k.dim_qk - k.dim_v)) / sum;
    const double softmax = 1.0 + softmax_ / sum;
    const double blocks = static_cast<double>(k.batch * k.heads) * std::ceil(static_cast<double>(k.seq_q) / kBlock);
    const double fill = std::min(1.0, blocks / sms_);
    return fixed_ + throttle_(k.flops.value() / rate_ * (1.0 + half_keys_ / keys) * softmax * uneven / fill);
  }

 private:
  double sms_, fixed_, rate_, half_keys_, softmax_, uneven_;
  Throttle throttle_;
};

}  // namespace

std::unique_ptr<const Curve> make_attention_curve(const CostCurve& curve) {
  return std::make_unique<AttentionCurve>(curve);
}

}  // namespace k3sim
