// A cost curve ready to evaluate: microseconds of a kernel from named coefficients. The fit and the predictions use the
// same curves, so that a coefficient means the same in both. One file per form:
//   tiles          dense matrix products         gemm_curve.cpp
//   grouped_tiles  products of many experts      grouped_curve.cpp
//   attention      softmax attention core        attention_curve.cpp
//   serial_chain   recurrent kernels, one chain per SM   serial_chain_curve.cpp
//   prepass_chain  their pre-pass, four blocks per chain serial_chain_curve.cpp
//   linear         fixed + bytes / bandwidth + operations / rate   linear_curve.cpp
// Rates are in TFLOP/s, bandwidths in TB/s, times in microseconds. Source: engine-design section 14.
#pragma once

#include <memory>

#include "models/cost/gpu_profile.h"
#include "models/transformer/kernel.h"

namespace k3sim {

class Curve {
 public:
  virtual ~Curve() = default;
  virtual double microseconds(const Kernel& kernel) const = 0;
};

// Throws ConfigError for an unknown form or a missing coefficient.
std::unique_ptr<const Curve> make_curve(const CostCurve& curve);

std::unique_ptr<const Curve> make_tiles_curve(const CostCurve& curve);
std::unique_ptr<const Curve> make_grouped_tiles_curve(const CostCurve& curve);
std::unique_ptr<const Curve> make_attention_curve(const CostCurve& curve);
std::unique_ptr<const Curve> make_serial_chain_curve(const CostCurve& curve);
std::unique_ptr<const Curve> make_linear_curve(const CostCurve& curve);

// Power limit: long kernels run at lower clocks. t -> t (1 + c ln(1 + max(t, burst) / onset)), held beyond 10 ms. burst
// is 0 for a kernel on a rested GPU (as calibrated) and CostOptions::sustained_burst in a stream that never rests.
class Throttle {
 public:
  explicit Throttle(const CostCurve& curve);
  double operator()(double microseconds) const;

 private:
  double strength_, onset_us_, burst_us_ = 0;
};

}  // namespace k3sim
