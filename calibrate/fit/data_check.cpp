// Source: data_check.h.
#include "calibrate/fit/data_check.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "calibrate/fit/curve_fit.h"

namespace k3sim {

namespace {

constexpr double kRateMargin = 1.1;      // clocks above the one behind the datasheet peak: 1980 against 1830 MHz
constexpr double kTrafficMargin = 1.3;   // rows that hit L2 more than once
constexpr double kLargeTraffic = 200e6;  // bytes; smaller footprints may live in L2

void check_times(const KernelRow& r, const Place& place, std::vector<Problem>& out) {
  const Measurement& m = r.measurement;
  if (!(m.median_us > 0) || !std::isfinite(m.median_us)) {
    out.push_back({place, m.id.key(), fmt::format("median_us is {}, must be positive", m.median_us), {}});
    return;
  }
  // Absent quantiles read as 0.
  if (m.p20_us > 0 && m.p80_us > 0 && (m.p20_us > m.median_us || m.median_us > m.p80_us))
    out.push_back(
        {place,
         m.id.key(),
         fmt::format("quantiles out of order: p20 {} us, median {} us, p80 {} us", m.p20_us, m.median_us, m.p80_us),
         {}});
}

void check_rate(const KernelRow& r, const GpuLimits& g, const Place& place, std::vector<Problem>& out) {
  const Measurement& m = r.measurement;
  if (!r.usable() || !(m.median_us > 0)) return;
  const double flops = r.kernel.flops.value(), seconds = m.median_us * 1e-6;
  const double peak = (is_fp8(r.kernel.dtype) ? g.fp8_dense : g.bf16_dense).value();
  if (m.id.flops > 0 && flops > 0 && std::abs(m.id.flops / flops - 1.0) > 0.01)
    out.push_back({place, m.id.key(), fmt::format("flops is {:.6g}, the shape gives {:.6g}", m.id.flops, flops), {}});
  if (flops / seconds > kRateMargin * peak)
    out.push_back({place,
                   m.id.key(),
                   fmt::format("{:.0f} TFLOP/s is above the {:.0f} TFLOP/s of the {}", flops / seconds / kTera,
                               peak / kTera, g.name),
                   {}});
  const double bytes = r.kernel.bytes.as_double();
  if (r.family == "memory" && bytes > kLargeTraffic && bytes / seconds > kTrafficMargin * g.hbm.value())
    out.push_back({place,
                   m.id.key(),
                   fmt::format("{:.2f} TB/s is above the {:.2f} TB/s of the {}", bytes / seconds / kTera,
                               g.hbm.value() / kTera, g.name),
                   {}});
}

}  // namespace

std::vector<Problem> check_measurements(const std::vector<KernelRow>& rows, const GpuLimits& limits,
                                        const std::string& file) {
  std::vector<Problem> out;
  const Place place{file, 0, 0};
  std::map<std::string, double> seen;
  std::map<std::string, int> count;
  std::map<std::string, std::string> example;
  for (const KernelRow& r : rows) {
    check_times(r, place, out);
    check_rate(r, limits, place, out);
    const std::string key = r.measurement.id.key();
    if (const auto before = seen.find(key); before != seen.end()) {
      const double ratio = std::max(before->second, r.measurement.median_us) /
                           std::max(1e-9, std::min(before->second, r.measurement.median_us));
      if (ratio > kRepeatTolerance)
        out.push_back(
            {place, key, fmt::format("measured twice, {} us and {} us", before->second, r.measurement.median_us), {}});
    }
    seen[key] = r.measurement.median_us;
    if (!r.usable()) continue;
    ++count[r.curve];
    example.emplace(r.curve, key);
  }
  for (const auto& [curve, n] : count)
    if (n < fewest_rows(curve))
      out.push_back({place, example[curve],
                     fmt::format("only {} rows for the curve {}, which needs {}", n, curve, fewest_rows(curve)),
                     "measure more shapes or leave them out"});
  if (count.empty()) out.push_back({place, "", "no row that a kernel curve could be fitted to", {}});
  return out;
}

}  // namespace k3sim
