// Quantities as people write them: "450 GB/s", "400 Gbit/s", "80 GiB", "3.35 TB/s", "989.4 TFLOP/s", "7 us".
//   GB = 1e9 bytes, GiB = 2^30 bytes, bit = 1/8 byte; a number without a unit is an error, as is an unknown unit.
// parse_* never throw: `why` says what is wrong with the text and `hint` what was probably meant.
// to_text writes a form that parses back to the same value (property test: tests/unit/sim/base/units_text_test.cpp).
// Source: product-spec section 3 (units in YAML), style-anchors section 4 rule 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace k3sim {

template <class T>
struct Parsed {
  std::optional<T> value;
  std::string why;   // empty when value is there
  std::string hint;  // "did you mean 'GB/s'?" or empty
  explicit operator bool() const { return value.has_value(); }
};

Parsed<Bytes> parse_bytes(std::string_view text);          // whole bytes: B, KB ... PB, KiB ... PiB
Parsed<Time> parse_time(std::string_view text);            // ps, ns, us, ms, s, min, h, d; rounds up to 1 ps
Parsed<Bandwidth> parse_bandwidth(std::string_view text);  // B/s ... TB/s, GiB/s, Gbit/s
Parsed<FlopRate> parse_flop_rate(std::string_view text);   // FLOP/s ... PFLOP/s
Parsed<Flops> parse_flops(std::string_view text);          // FLOP ... EFLOP

// Whole numbers of things: "8192", "8192 tokens", "20T", "15.6T tokens", "64Ki". K, M, B or G, T are decimal,
// Ki, Mi, Gi binary. `noun` is the only word accepted behind the number; empty accepts none.
Parsed<std::int64_t> parse_count(std::string_view text, std::string_view noun = {});

std::string to_text(Bytes b);      // "80 GiB": the largest binary unit that divides it, else "N B"
std::string to_text(Time t);       // "7 us": the largest unit that divides it
std::string to_text(Bandwidth w);  // "450 GB/s"
std::string to_text(FlopRate r);   // "989.4 TFLOP/s"
std::string to_text(Flops f);      // "3 GFLOP"

}  // namespace k3sim
