// Coefficients are told apart by their prefix. Source: transfer.h.
#include "models/cost/transfer.h"

#include <fmt/format.h>

#include <array>

namespace k3sim {

namespace {

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

// Residuals of a borrowed curve are not known: the spread of the original one is widened by 10 %.
constexpr double kBorrowedSpread = 1.1;
constexpr double kBlockScaledFp8 = 1.0 / 1.09;
constexpr double kGroupedFp8 = 1100.0 / 700.0;

void derive(GpuProfile& p, const char* name, const char* from, double rate, double throttle) {
  const auto source = p.curves.find(from);
  if (source == p.curves.end() || p.curves.count(name) != 0) return;
  Borrow rule{.from = from, .compute = rate, .throttle = throttle, .note = {}};
  p.curves[name] = transfer_curve(source->second, rule, p.limits.sm_count);
  p.curves[name].inherited = true;
}

}  // namespace

CostCurve transfer_curve(const CostCurve& curve, const Borrow& rule, int sm_count) {
  CostCurve out = curve;
  out.provenance = worst(curve.provenance, Provenance::borrowed);
  out.p95_ratio = curve.p95_ratio * kBorrowedSpread;
  out.note = fmt::format("from {}: compute x {:.3g}, memory x {:.3g}, clock x {:.3g}, throttle x {:.3g}", rule.from,
                         rule.compute, rule.memory, rule.clock, rule.throttle);
  for (auto& [name, value] : out.coefficients) {
    if (starts_with(name, "rate_")) value *= rule.compute;
    if (starts_with(name, "bw_")) value *= rule.memory;
    if (starts_with(name, "sm_")) value /= rule.clock;
    if (name == "throttle") value *= rule.throttle;
    if (name == "sms") value = sm_count;
  }
  return out;
}

bool is_derived_curve(const std::string& name) {
  return name == "gemm_fp8_block" || name == "grouped_fp8" || name == "gemm_fp32";
}

void derive_curves(GpuProfile& p) {
  derive(p, "gemm_fp8_block", "gemm_fp8", kBlockScaledFp8, 1.0);
  derive(p, "grouped_fp8", "grouped_bf16", kGroupedFp8, 1.0);
  derive(p, "gemm_fp32", "gemm_bf16", p.fp32 / p.limits.bf16_dense, 0.0);
}

}  // namespace k3sim
