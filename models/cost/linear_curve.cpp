// Bandwidth-bound and evenly spread kernels: t = fixed + bytes / bw_hbm (1 + width / half_width) + operations / rate.
// Terms whose coefficient is absent are left out; width is the row length n (normalisation reads a row per block),
// usual_width when the kernel does not say. Newton-Schulz counts five reads or writes of its matrices as bytes.
// Source: hardware notes 5.4 to 5.6; engine-design section 14 (linear forms with units and signs).
#include "models/cost/curve.h"

namespace k3sim {

namespace {

double optional(const CostCurve& c, const char* name) {
  return c.coefficients.count(name) != 0 ? c.at(name) : 0.0;
}

double traffic(const Kernel& k) {
  if (k.family == KernelFamily::newton_schulz)
    return 5.0 * 2.0 * static_cast<double>(k.batch) * static_cast<double>(k.m) * static_cast<double>(k.n);
  if (k.family == KernelFamily::topk) return 4.0 * static_cast<double>(k.m) * static_cast<double>(k.n);
  return k.bytes.as_double();
}

class LinearCurve final : public Curve {
 public:
  explicit LinearCurve(const CostCurve& c)
      : fixed_(c.at("fixed_us")),
        hbm_(optional(c, "bw_hbm") * 1e6),
        half_width_(optional(c, "half_width")),
        usual_width_(optional(c, "usual_width")),
        rate_(optional(c, "rate_peak") * 1e6) {}

  double microseconds(const Kernel& k) const override {
    double t = fixed_;
    if (hbm_ > 0) {
      const double width = k.n > 0 ? static_cast<double>(k.n) : usual_width_;
      t += traffic(k) / hbm_ * (half_width_ > 0 ? 1.0 + width / half_width_ : 1.0);
    }
    if (rate_ > 0) t += k.flops.value() / rate_;
    return t;
  }

 private:
  double fixed_, hbm_, half_width_, usual_width_, rate_;
};

}  // namespace

std::unique_ptr<const Curve> make_linear_curve(const CostCurve& curve) {
  return std::make_unique<LinearCurve>(curve);
}

}  // namespace k3sim
