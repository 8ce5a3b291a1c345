// Text form of a measurement row. The number formats are those of the shipped files: whole operation and byte counts,
// times in microseconds with three decimals.
// Source: product-spec.md section 5.
#include "calibrate/harness/measurement.h"

#include <fmt/format.h>

namespace k3sim {

std::string join_params(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += ';';
    out += name + "=" + value;
  }
  return out;
}

std::string to_csv_line(const Measurement& m) {
  return fmt::format("{},{:.0f},{:.0f},{:.3f},{:.3f},{:.3f},{}", m.id.key(), m.id.flops, m.id.bytes, m.median_us,
                     m.p20_us, m.p80_us, m.reps);
}

}  // namespace k3sim
