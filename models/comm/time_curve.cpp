// Log-log interpolation; see the header.
// Source: AIConfigurator's measured NCCL tables are read the same way (interpolation in log space).
#include "models/comm/time_curve.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {

double marginal_rate(const TimeCurve& curve) {
  const std::size_t last = curve.bytes.size() - 1;
  std::size_t from = last - 1;
  while (from > 0 && curve.bytes[from] * 4 > curve.bytes[last]) --from;
  return (curve.bytes[last] - curve.bytes[from]) / (curve.seconds[last] - curve.seconds[from]);
}

CurveTime curve_time(const TimeCurve& curve, double bytes) {
  const auto& x = curve.bytes;
  const auto& y = curve.seconds;
  CS_CHECK(x.size() >= 2 && x.size() == y.size(), "curve with {} sizes and {} times", x.size(), y.size());
  if (bytes <= x.front())
    return {y.front(), bytes < x.front() ? worst(curve.provenance, Provenance::boundary) : curve.provenance};
  if (bytes >= x.back()) {
    const double more = (bytes - x.back()) / marginal_rate(curve);
    return {y.back() + more, bytes > x.back() ? worst(curve.provenance, Provenance::boundary) : curve.provenance};
  }
  const auto hi = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), bytes) - x.begin());
  const double f = std::log(bytes / x[hi - 1]) / std::log(x[hi] / x[hi - 1]);
  return {y[hi - 1] * std::pow(y[hi] / y[hi - 1], f), curve.provenance};
}

TimeCurve rescaled(const TimeCurve& curve, double speed, double first_seconds) {
  TimeCurve out = curve;
  const double first = curve.seconds.front();
  // The latency part keeps its own ratio; small sizes between are latency-bound too and grow with it.
  for (double& t : out.seconds) t = first_seconds + (t - first) / speed;
  out.provenance = worst(curve.provenance, Provenance::borrowed);
  return out;
}

}  // namespace k3sim
