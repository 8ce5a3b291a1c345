// What quantities as text must mean, against hand-computed values.
#include "sim/base/units_text.h"

#include <doctest/doctest.h>

#include "sim/base/rng.h"

using namespace k3sim;

TEST_CASE("units: the quantities of data sheets read as what they say") {
  CHECK(parse_bandwidth("450 GB/s").value->value() == 450e9);
  CHECK(parse_bandwidth("400 Gbit/s").value->value() == 50e9);
  CHECK(parse_bandwidth("3.35 TB/s").value->value() == doctest::Approx(3.35e12));
  CHECK(parse_bytes("80 GiB").value->count() == 80LL * 1024 * 1024 * 1024);
  CHECK(parse_bytes("80 GB").value->count() == 80'000'000'000);
  CHECK(parse_flop_rate("989.4 TFLOP/s").value->value() == doctest::Approx(989.4e12));
  CHECK(parse_time("7 us").value->picoseconds() == 7'000'000);
  CHECK(parse_time("0.1 us").value->picoseconds() == 100'000);
  CHECK(parse_time("7 µs").value->picoseconds() == 7'000'000);
  CHECK(parse_flops("3 GFLOP").value->value() == 3e9);
}

TEST_CASE("units: blanks between number and unit do not matter") {
  CHECK(parse_bytes("80GiB").value == parse_bytes("  80   GiB ").value);
}

TEST_CASE("units: a time shorter than a picosecond rounds up, once") {
  CHECK(parse_time("0.4 ps").value->picoseconds() == 1);
  CHECK(parse_time("1.0001 ns").value->picoseconds() == 1001);
}

TEST_CASE("units: a number without a unit is an error that shows how to write it") {
  const auto parsed = parse_bandwidth("450");
  CHECK_FALSE(parsed);
  CHECK(parsed.why == "'450' has no unit; write for example '450 GB/s'");
}

TEST_CASE("units: an unknown unit suggests the nearest one") {
  CHECK(parse_bytes("80 Gib").hint == "did you mean 'GiB'?");
  CHECK(parse_bandwidth("400 Gbps").hint == "did you mean 'Gbit/s'?");
  CHECK(parse_flop_rate("989 TFLOPS").hint == "did you mean 'TFLOP/s'?");
  CHECK(parse_time("3 sec").hint == "did you mean 's'?");
}

TEST_CASE("units: a quantity of another kind is refused") {
  CHECK_FALSE(parse_bytes("80 GB/s"));
  CHECK_FALSE(parse_bandwidth("80 GB"));
  CHECK_FALSE(parse_flops("3 TFLOP/s"));
}

TEST_CASE("units: negative, empty, infinite and fractional bytes are refused") {
  CHECK_FALSE(parse_bytes("-1 GiB"));
  CHECK_FALSE(parse_bytes(""));
  CHECK_FALSE(parse_bytes("GiB"));
  CHECK_FALSE(parse_bytes("inf GiB"));
  CHECK_FALSE(parse_bytes("nan GiB"));
  CHECK_FALSE(parse_bytes("0.1 KiB"));
  CHECK_FALSE(parse_bytes("1e30 B"));
  CHECK_FALSE(parse_time("1000 d"));
}

TEST_CASE("counts: plain, with their noun, and with decimal or binary suffixes") {
  CHECK(*parse_count("8192").value == 8192);
  CHECK(*parse_count("8192 tokens", "tokens").value == 8192);
  CHECK(*parse_count("64Ki", "tokens").value == 65536);
  CHECK(*parse_count("20T").value == 20'000'000'000'000);
  CHECK(*parse_count("15.6T tokens", "tokens").value == 15'600'000'000'000);
  CHECK(parse_count("8192 token", "tokens").hint == "did you mean 'tokens'?");
  CHECK_FALSE(parse_count("8192 tokens"));
  CHECK_FALSE(parse_count("1.5"));
  CHECK_FALSE(parse_count("-3"));
  CHECK_FALSE(parse_count("many"));
}

TEST_CASE("units: what is written reads back as the same value, over many magnitudes") {
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto v = static_cast<std::int64_t>(random_bits({1, 0, 0}, i) >> (2 + i % 62));
    if (v < 9'000'000'000'000'000'000) CHECK(*parse_time(to_text(Time::ps(v))).value == Time::ps(v));
    CHECK(*parse_bytes(to_text(Bytes(v))).value == Bytes(v));
    const double d = static_cast<double>(v) * 1.1;
    CHECK(*parse_bandwidth(to_text(Bandwidth(d))).value == Bandwidth(d));
    CHECK(*parse_flop_rate(to_text(FlopRate(d))).value == FlopRate(d));
    CHECK(*parse_flops(to_text(Flops(d))).value == Flops(d));
  }
}

TEST_CASE("units: round values are written as people write them") {
  CHECK(to_text(Bytes::gib(80)) == "80 GiB");
  CHECK(to_text(Bytes(3)) == "3 B");
  CHECK(to_text(Time::us(7)) == "7 us");
  CHECK(to_text(Bandwidth(450e9)) == "450 GB/s");
  CHECK(to_text(FlopRate(989.4e12)) == "989.4 TFLOP/s");
}
