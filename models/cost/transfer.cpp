// Coefficients are told apart by their prefix, see transfer.h (source and validity there). Copies over the host link
// (copy_h2d and its like) belong to the node, not to HBM: their curves have no place in a profile that borrows.
#include "models/cost/transfer.h"

#include <fmt/format.h>

namespace k3sim {

namespace {

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// Residuals of a borrowed curve are not known: the spread of the original one is widened by 10 %.
constexpr double kBorrowedSpread = 1.1;

}  // namespace

CostCurve transfer_curve(const CostCurve& curve, const Borrow& rule, int sm_count) {
  CostCurve out = curve;
  out.provenance = worst(curve.provenance, Provenance::borrowed);
  out.p95_ratio = curve.p95_ratio * kBorrowedSpread;
  out.note = fmt::format("from {}: compute x {:.3g}, memory x {:.3g}, clock x {:.3g}", rule.from, rule.compute,
                         rule.memory, rule.clock);
  for (auto& [name, value] : out.coefficients) {
    if (starts_with(name, "rate_")) value *= rule.compute;
    if (starts_with(name, "bw_")) value *= rule.memory;
    if (starts_with(name, "sm_")) value /= rule.clock;
    if (name == "sms") value = sm_count;
  }
  return out;
}

}  // namespace k3sim
