// 64-bit fingerprint of an event stream: equal runs have equal fingerprints, whatever the threads or the build.
// FNV-1a over 64-bit words with a final avalanche (splitmix64), so that neighbouring inputs differ in many bits.
// Idea: OMNeT++ src/sim/cfingerprint.h. Not cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

namespace k3sim {

class Fingerprint {
 public:
  constexpr void add(std::uint64_t word) { hash_ = (hash_ ^ mix(word)) * 0x100000001b3ULL; }
  constexpr void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  constexpr std::uint64_t value() const { return mix(hash_); }

  // splitmix64 finaliser: a bijection on 64-bit words.
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace k3sim
