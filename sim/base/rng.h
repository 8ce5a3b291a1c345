// Counter-based random numbers keyed by (seed, purpose, entity, index): no hidden state, so adding one draw never
// shifts another, and results do not depend on threads or order. Built on the splitmix64 finaliser (Steele, Lea, Flood
// 2014).
#pragma once

#include <cmath>
#include <cstdint>

#include "sim/base/fingerprint.h"

namespace k3sim {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t purpose = 0;  // what the draw is for; one constant per use
  std::uint64_t entity = 0;   // whose draw (layer, rank, ...)
};

inline std::uint64_t random_bits(const RandomKey& k, std::uint64_t index) {
  std::uint64_t h = Fingerprint::mix(k.seed);
  h = Fingerprint::mix(h ^ k.purpose);
  h = Fingerprint::mix(h ^ k.entity);
  return Fingerprint::mix(h ^ index);
}

// Uniform in (0, 1): never 0 and never 1.
inline double random_uniform(const RandomKey& k, std::uint64_t index) {
  return (static_cast<double>(random_bits(k, index) >> 11) + 0.5) * 0x1.0p-53;
}

// Uniform integer in [0, n). Requires: n > 0. Bias below n / 2^64.
__extension__ using Wide = unsigned __int128;

inline std::uint64_t random_below(const RandomKey& k, std::uint64_t index, std::uint64_t n) {
  return static_cast<std::uint64_t>((static_cast<Wide>(random_bits(k, index)) * n) >> 64);
}

// Standard normal by Box-Muller; draw i uses the counters 2i and 2i+1.
inline double random_normal(const RandomKey& k, std::uint64_t index) {
  const double u = random_uniform(k, 2 * index), v = random_uniform(k, 2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

}  // namespace k3sim
