// Units: rounding happens once and upwards, exact ratios stay exact, and only physical operators exist.
#include "sim/base/units.h"

#include <doctest/doctest.h>

#include <concepts>

#include "sim/base/rng.h"

namespace k3sim {
namespace {

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Divides = requires(A a, B b) {
  a / b;
};

static_assert(Adds<Time, Time> && Adds<Bytes, Bytes>);
static_assert(!Adds<Time, Bytes> && !Adds<Flops, FlopRate> && !Adds<Bandwidth, FlopRate> && !Adds<Time, int>);
static_assert(Divides<Bytes, Bandwidth> && Divides<Flops, FlopRate>);
static_assert(!Divides<Bytes, FlopRate> && !Divides<Flops, Bandwidth> && !Divides<Bandwidth, Bytes>);
static_assert(!std::convertible_to<double, Time> && !std::convertible_to<long, Bytes>);

TEST_CASE("units: an exact ratio gives the exact time, not one picosecond more") {
  for (std::int64_t k = 1; k < 20'000; ++k) {
    CHECK_MESSAGE(Bytes(450 * k) / Bandwidth(450e9) == Time::ns(k), k);
    REQUIRE(Flops(989.4e3 * static_cast<double>(k)) / FlopRate(989.4e12) == Time::ns(k));
    REQUIRE(Time::from_us(static_cast<double>(k)) == Time::us(k));
  }
}

TEST_CASE("units: any fraction of a picosecond rounds up to the next one") {
  CHECK(Bytes(1) / Bandwidth(450e9) == Time::ps(3));  // 2.22 ps
  CHECK(Bytes(1) / Bandwidth(1e15) == Time::ps(1));
  CHECK(Bytes(0) / Bandwidth(450e9) == Time());
  CHECK(Time::from_seconds_ceil(1.0001e-12) == Time::ps(2));
  CHECK(Bytes::ceil(10.25) == Bytes(11));
  CHECK(Bytes::ceil(0.1 * 30) == Bytes(3));  // 3.0000000000000004
}

TEST_CASE("units: time from bytes is never less than the ratio and less than one picosecond above it") {
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random_below({.seed = 1}, i, 1'000'000));
    const auto rate = static_cast<std::int64_t>(1 + random_below({.seed = 2}, i, 1'000'000'000'000));
    __extension__ using Wide = __int128;
    const Wide work = static_cast<Wide>(bytes) * 1'000'000'000'000;
    const Wide exact_ceil = (work + rate - 1) / rate;
    const Time t = Bytes(bytes) / Bandwidth(static_cast<double>(rate));
    if (exact_ceil < (std::int64_t{1} << 50)) REQUIRE(t.picoseconds() == static_cast<std::int64_t>(exact_ceil));
  }
}

TEST_CASE("units: scaling by one changes nothing at any magnitude and by a fraction rounds up") {
  for (int bit = 0; bit < 53; ++bit) {
    const Time t = Time::ps((std::int64_t{1} << bit) + (bit > 0 ? 1 : 0));
    CHECK(scale(t, 1.0) == t);
  }
  CHECK(scale(Time::ps(10), 0.11) == Time::ps(2));
  CHECK(scale(Time::ps(10), 1.1) == Time::ps(11));
  CHECK(scale(Time::us(7), 0.0) == Time());
}

TEST_CASE("units: shares of bytes cover the whole with less than one byte too much each") {
  for (std::int64_t n = 1; n < 50; ++n) {
    for (std::int64_t v : {0, 1, 48, 49, 1000, 12345}) {
      CHECK(Bytes(v).share(n) * n >= Bytes(v));
      CHECK(Bytes(v).share(n) * n < Bytes(v + n));
    }
  }
}

TEST_CASE("units: binary and decimal prefixes differ") {
  CHECK(Bytes::gib(80).count() == 85'899'345'920);
  CHECK(Bytes::gib(1).gibibytes() == 1.0);
  CHECK(Bytes::mib(1) == 1024 * Bytes::kib(1));
  CHECK(Time::ms(1) == 1000 * Time::us(1));
  CHECK(Time::ms(1500).seconds() == doctest::Approx(1.5));
}

TEST_CASE("units: the clock covers a step of a hundred days in picoseconds") {
  CHECK(Time::max() > Time::from_seconds_ceil(100.0 * 86400));
}

}  // namespace
}  // namespace k3sim
