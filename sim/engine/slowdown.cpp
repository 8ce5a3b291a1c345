// Factor tables by set of active classes, and the integer arithmetic between work and wall time (128-bit products).
// Source: engine-design notes section 4.
#include "sim/engine/slowdown.h"

#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {

namespace {
__extension__ using Wide = unsigned __int128;
constexpr std::int64_t kUnitsInWord = std::numeric_limits<std::int64_t>::max() / SlowdownTable::kUnit;
constexpr double kMaxFactor = 1024;
}  // namespace

SlowdownMatrix no_slowdown() {
  SlowdownMatrix m;
  for (auto& row : m) row.fill(1.0);
  return m;
}

SlowdownTable::SlowdownTable(const SlowdownMatrix& matrix) {
  for (std::size_t a = 0; a < kSharedClasses; ++a) {
    for (std::size_t others = 0; others < factor_[a].size(); ++others) {
      double product = 1;
      for (std::size_t b = 1; a > 0 && b < kSharedClasses; ++b) {
        const double f = matrix[a][b];
        CS_CHECK(f >= 1 && f <= kMaxFactor, "slow-down of class {} by class {} is {}", a, b, f);
        if ((others >> b & 1) != 0) product *= f;
      }
      product = std::fmin(product, kMaxFactor);
      factor_[a][others] = static_cast<std::int64_t>(std::ceil(product * static_cast<double>(kUnit)));
      trivial_ = trivial_ && factor_[a][others] == kUnit;
    }
  }
}

Time SlowdownTable::time_for(Time work, std::int64_t factor) {
  const auto scaled = static_cast<Wide>(work.picoseconds()) * static_cast<Wide>(factor);
  return Time::ps(static_cast<std::int64_t>((scaled + kUnit - 1) / kUnit));
}

Time SlowdownTable::progress(Time elapsed, std::int64_t factor) {
  const std::int64_t ps = elapsed.picoseconds();
  if (ps < kUnitsInWord) return Time::ps(ps * kUnit / factor);  // below 8.8 s: no 128-bit division
  return Time::ps(static_cast<std::int64_t>(static_cast<Wide>(ps) * kUnit / static_cast<Wide>(factor)));
}

}  // namespace k3sim
