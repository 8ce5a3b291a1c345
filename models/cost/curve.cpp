// Source: curve.h; the power limit is the burst-to-sustained fall of hardware notes 1.3 (850 to 700 TFLOP/s on H100).
#include "models/cost/curve.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

Throttle::Throttle(const CostCurve& curve) : strength_(curve.at("throttle")), onset_us_(curve.at("throttle_onset")) {
  const auto burst = curve.coefficients.find("sustained_burst_us");
  if (burst != curve.coefficients.end()) burst_us_ = burst->second;
}

double Throttle::operator()(double us) const {
  constexpr double kSustainedUs = 1e4;
  return us * (1.0 + strength_ * std::log1p(std::min(std::max(us, burst_us_), kSustainedUs) / onset_us_));
}

std::unique_ptr<const Curve> make_curve(const CostCurve& curve) {
  if (curve.form == "tiles") return make_tiles_curve(curve);
  if (curve.form == "grouped_tiles") return make_grouped_tiles_curve(curve);
  if (curve.form == "attention") return make_attention_curve(curve);
  if (curve.form == "serial_chain" || curve.form == "prepass_chain") return make_serial_chain_curve(curve);
  if (curve.form == "linear") return make_linear_curve(curve);
  const std::vector<std::string> known{"tiles",        "grouped_tiles", "attention",
                                       "serial_chain", "prepass_chain", "linear"};
  throw ConfigError(
      {Problem{{}, "curves", "unknown curve form '" + curve.form + "'", did_you_mean(curve.form, known)}});
}

}  // namespace k3sim
