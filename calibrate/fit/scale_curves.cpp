// Source: scale_curves.h.
#include "calibrate/fit/scale_curves.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "calibrate/fit/curve_fit.h"
#include "models/cost/curve.h"
#include "models/cost/transfer.h"

namespace k3sim {
namespace {

using Rows = std::vector<KernelRow*>;

std::vector<double> ratios_of(const CostCurve& facts, const Rows& rows) {
  const auto curve = make_curve(facts);
  std::vector<double> out;
  for (const KernelRow* r : rows) out.push_back(r->measurement.median_us / curve->microseconds(r->kernel));
  return out;
}

}  // namespace

std::vector<ScaledCurve> scale_sparse_curves(GpuProfile& base, std::vector<KernelRow>& rows) {
  std::map<std::string, Rows> by_curve;
  for (KernelRow& r : rows)
    if (r.usable()) by_curve[r.curve].push_back(&r);
  std::vector<ScaledCurve> out;
  for (auto& [key, part] : by_curve) {
    const auto found = base.curves.find(key);
    if (static_cast<int>(part.size()) >= fewest_rows(key) || found == base.curves.end()) continue;
    CostCurve& curve = found->second;
    ScaledCurve s{key, static_cast<int>(part.size()), quantile_of(ratios_of(curve, part), 0.5), 0};
    // Fixed times do not scale: a second pass takes up what the first left.
    double left = s.ratio;
    for (int pass = 0; pass < 3; ++pass) {
      const Borrow rule{.from = base.limits.name, .compute = 1 / left, .memory = 1 / left, .note = {}};
      curve = transfer_curve(curve, rule, static_cast<int>(base.limits.sm_count));
      left = quantile_of(ratios_of(curve, part), 0.5);
    }
    std::vector<double> errors;
    for (double r : ratios_of(curve, part)) errors.push_back(std::fabs(1 / r - 1));
    s.error = quantile_of(errors, 0.5);
    curve.provenance = Provenance::fitted;
    curve.inherited = false;
    curve.rows = s.rows;
    curve.median_error = s.error;
    curve.p90_error = quantile_of(errors, 0.9);
    curve.note = fmt::format("base curve scaled by {:.3f} on {} rows of a training run", s.ratio, s.rows);
    for (KernelRow* r : part) r->reason = "too few for a curve of its own; scaled " + key;
    out.push_back(s);
  }
  return out;
}

}  // namespace k3sim
