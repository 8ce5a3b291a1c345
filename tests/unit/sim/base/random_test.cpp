// Fingerprints and keyed random numbers: no hidden state, independence, and sane statistics with fixed seeds.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/base/ids.h"
#include "sim/base/rng.h"

namespace k3sim {
namespace {

TEST_CASE("fingerprint: equal streams agree; order, split and length matter") {
  const auto of = [](std::initializer_list<std::uint64_t> words) {
    Fingerprint f;
    for (std::uint64_t w : words) f.add(w);
    return f.value();
  };
  CHECK(of({1, 2, 3}) == of({1, 2, 3}));
  CHECK(of({1, 2}) != of({2, 1}));
  CHECK(of({}) != of({0}));
  CHECK(of({0}) != of({0, 0}));
  Fingerprint joined, split;
  joined.add("ab");
  joined.add("c");
  split.add("a");
  split.add("bc");
  CHECK(joined.value() != split.value());
}

TEST_CASE("fingerprint: one flipped input bit flips about half of the output bits") {
  for (int bit = 0; bit < 64; ++bit) {
    Fingerprint a, b;
    a.add(std::uint64_t{12345});
    b.add(std::uint64_t{12345} ^ (std::uint64_t{1} << bit));
    const int flipped = std::popcount(a.value() ^ b.value());
    CHECK(flipped > 12);
    CHECK(flipped < 52);
  }
}

TEST_CASE("rng: a draw depends on its key and index alone, whatever was drawn before") {
  const RandomKey key{.seed = 7, .purpose = 1, .entity = 3};
  std::vector<std::uint64_t> forward, backward;
  for (std::uint64_t i = 0; i < 100; ++i) forward.push_back(random_bits(key, i));
  for (std::uint64_t i = 100; i-- > 0;) backward.insert(backward.begin(), random_bits(key, i));
  CHECK(forward == backward);
}

TEST_CASE("rng: changing seed, purpose, entity or index gives unrelated bits") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 8; ++a)
    for (std::uint64_t b = 0; b < 8; ++b)
      for (std::uint64_t c = 0; c < 8; ++c)
        for (std::uint64_t i = 0; i < 8; ++i) seen.insert(random_bits({a, b, c}, i));
  CHECK(seen.size() == 8 * 8 * 8 * 8);
}

TEST_CASE("rng: draws of two entities are uncorrelated and uniform") {
  constexpr int kDraws = 20'000;
  double sum = 0, cross = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random_uniform({1, 2, 3}, static_cast<std::uint64_t>(i));
    const double v = random_uniform({1, 2, 4}, static_cast<std::uint64_t>(i));
    REQUIRE(u > 0.0);
    REQUIRE(u < 1.0);
    sum += u;
    cross += (u - 0.5) * (v - 0.5);
  }
  CHECK(sum / kDraws == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(cross / kDraws) < 0.002);  // standard error 1/12/sqrt(n) = 0.0006
}

TEST_CASE("rng: random_below stays below and reaches every value about equally often") {
  std::vector<int> count(7, 0);
  for (std::uint64_t i = 0; i < 70'000; ++i) ++count.at(random_below({.seed = 5}, i, 7));
  for (int c : count) CHECK(std::abs(c - 10'000) < 500);
}

TEST_CASE("rng: normal draws have mean 0, deviation 1 and the right tails") {
  constexpr int kDraws = 20'000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random_normal({.seed = 11}, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  CHECK(std::abs(sum / kDraws) < 0.03);
  CHECK(squares / kDraws == doctest::Approx(1.0).epsilon(0.03));
  CHECK(beyond_two / double{kDraws} == doctest::Approx(0.0455).epsilon(0.15));
}

TEST_CASE("ids: a default id is invalid and larger than every valid one") {
  CHECK(!TaskId().valid());
  CHECK(TaskId(0).valid());
  CHECK(TaskId(123456) < TaskId());
}

}  // namespace
}  // namespace k3sim
