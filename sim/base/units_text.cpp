// One table of units per quantity; parsing multiplies, writing divides by the largest unit that gives back the same
// value. Source: product-spec section 3; SI and IEC prefixes.
#include "sim/base/units_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "sim/base/suggest.h"

namespace k3sim {
namespace {

struct Unit {
  const char* name;
  double factor;  // in base units: bytes, picoseconds, bytes per second, operations (per second)
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi, kPi = kTi * kKi;
constexpr Unit kByteUnits[] = {{"B", 1},     {"KB", 1e3},  {"MB", 1e6},  {"GB", 1e9},  {"TB", 1e12}, {"PB", 1e15},
                               {"KiB", kKi}, {"MiB", kMi}, {"GiB", kGi}, {"TiB", kTi}, {"PiB", kPi}};
constexpr Unit kTimeUnits[] = {{"ps", 1},   {"ns", 1e3},    {"us", 1e6},    {"ms", 1e9},
                               {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}, {"d", 86400e12}};
constexpr Unit kBandwidthUnits[] = {{"B/s", 1},        {"KB/s", 1e3},     {"MB/s", 1e6},    {"GB/s", 1e9},
                                    {"TB/s", 1e12},    {"PB/s", 1e15},    {"KiB/s", kKi},   {"MiB/s", kMi},
                                    {"GiB/s", kGi},    {"TiB/s", kTi},    {"bit/s", 0.125}, {"Kbit/s", 125},
                                    {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"Tbit/s", 125e9}};
constexpr Unit kFlopRateUnits[] = {{"FLOP/s", 1},     {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
                                   {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};
constexpr Unit kFlopUnits[] = {{"FLOP", 1},     {"MFLOP", 1e6},  {"GFLOP", 1e9}, {"TFLOP", 1e12},
                               {"PFLOP", 1e15}, {"EFLOP", 1e18}, {"ZFLOP", 1e21}};
constexpr Unit kCountSuffixes[] = {{"K", 1e3},  {"M", 1e6},  {"B", 1e9},  {"G", 1e9},
                                   {"T", 1e12}, {"Ki", kKi}, {"Mi", kMi}, {"Gi", kGi}};

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

struct NumberAndUnit {
  double number = 0;
  std::optional<std::int64_t> integer;  // when written as one: keeps all 63 bits
  std::string_view unit;                // trimmed rest
  std::string why;
};

NumberAndUnit split(std::string_view text) {
  NumberAndUnit out;
  const std::string_view s = trim(text);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out.number);
  if (error != std::errc{} || !std::isfinite(out.number)) {
    out.why = fmt::format("'{}' is not a number with a unit", text);
  } else if (out.number < 0) {
    out.why = fmt::format("'{}' is negative", text);
  }
  std::int64_t integer = 0;
  if (std::from_chars(s.data(), s.data() + s.size(), integer).ptr == end) out.integer = integer;
  out.unit = trim(s.substr(static_cast<std::size_t>(end - s.data())));
  return out;
}

std::vector<std::string> names(std::span<const Unit> units) {
  std::vector<std::string> out;
  for (const Unit& u : units) out.emplace_back(u.name);
  return out;
}

// Usual spellings whose meaning is plain but which we do not accept, because a lower-case b is ambiguous.
std::string usual_mistake(std::string_view unit) {
  if (unit == "Gbps" || unit == "Gb/s") return "did you mean 'Gbit/s'?";
  if (unit == "GBps") return "did you mean 'GB/s'?";
  if (unit == "TFLOPS" || unit == "TFLOPs" || unit == "TFLOPs/s") return "did you mean 'TFLOP/s'?";
  if (unit == "sec" || unit == "seconds") return "did you mean 's'?";
  return {};
}

struct Scaled {
  double value = 0;                   // in base units
  std::optional<std::int64_t> exact;  // when it is a whole number below 2^63
};

// The product is within a few ulp; a value within 1e-9 of a whole number is meant to be that number.
Scaled multiply(const NumberAndUnit& parts, double factor) {
  Scaled out{parts.number * factor, {}};
  std::int64_t product = 0;
  if (parts.integer && factor >= 1 && factor == std::floor(factor) && factor < 9e18) {
    if (!__builtin_mul_overflow(*parts.integer, static_cast<std::int64_t>(factor), &product)) out.exact = product;
    return out;
  }
  const double nearest = std::round(out.value);
  const bool is_whole = std::abs(out.value - nearest) <= 1e-9 * std::max(1.0, std::abs(out.value));
  if (is_whole && nearest < 9.2e18) out.exact = static_cast<std::int64_t>(nearest);
  return out;
}

// number * factor in base units, or what is wrong.
Parsed<Scaled> parse_scaled(std::string_view text, std::span<const Unit> units, const char* example) {
  NumberAndUnit parts = split(text);
  if (!parts.why.empty()) return {{}, parts.why + fmt::format(", for example '{}'", example), {}};
  if (parts.unit.empty()) return {{}, fmt::format("'{}' has no unit; write for example '{}'", trim(text), example), {}};
  for (const Unit& u : units)
    if (parts.unit == u.name) return {multiply(parts, u.factor), {}, {}};
  if (parts.unit == "µs" && units.front().name == kTimeUnits[0].name) return {multiply(parts, 1e6), {}, {}};
  std::string hint = usual_mistake(parts.unit);
  if (hint.empty()) hint = did_you_mean(parts.unit, names(units));
  return {{}, fmt::format("unknown unit '{}'; write for example '{}'", parts.unit, example), hint};
}

template <class Q>
Parsed<Q> parse_double_quantity(std::string_view text, std::span<const Unit> units, const char* example) {
  const Parsed<Scaled> base = parse_scaled(text, units, example);
  if (!base) return {{}, base.why, base.hint};
  return {Q(base.value->value), {}, {}};
}

// "450 GB/s": the shortest of the forms that parse back to exactly v.
std::string write_double(double v, std::span<const Unit> units, std::span<const char* const> preferred) {
  std::string best;
  for (const char* name : preferred) {
    for (const Unit& u : units) {
      if (std::string_view(u.name) != name || v < u.factor) continue;
      const double in_unit = v / u.factor;
      if (in_unit * u.factor == v && best.empty()) best = fmt::format("{} {}", in_unit, name);
    }
  }
  return best.empty() ? fmt::format("{} {}", v, units.front().name) : best;
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) {
  const Parsed<Scaled> base = parse_scaled(text, kByteUnits, "80 GiB");
  if (!base) return {{}, base.why, base.hint};
  if (!base.value->exact) return {{}, fmt::format("'{}' is not a whole number of bytes below 2^63", trim(text)), {}};
  return {Bytes(*base.value->exact), {}, {}};
}

Parsed<Time> parse_time(std::string_view text) {
  const Parsed<Scaled> base = parse_scaled(text, kTimeUnits, "7 us");
  if (!base) return {{}, base.why, base.hint};
  if (base.value->value > 9e18) return {{}, fmt::format("'{}' is longer than 104 days", trim(text)), {}};
  const std::optional<std::int64_t> exact = base.value->exact;
  return {Time::ps(exact ? *exact : static_cast<std::int64_t>(std::ceil(base.value->value))), {}, {}};
}

Parsed<Bandwidth> parse_bandwidth(std::string_view text) {
  return parse_double_quantity<Bandwidth>(text, kBandwidthUnits, "450 GB/s");
}

Parsed<FlopRate> parse_flop_rate(std::string_view text) {
  return parse_double_quantity<FlopRate>(text, kFlopRateUnits, "989.4 TFLOP/s");
}

Parsed<Flops> parse_flops(std::string_view text) {
  return parse_double_quantity<Flops>(text, kFlopUnits, "3 GFLOP");
}

Parsed<std::int64_t> parse_count(std::string_view text, std::string_view noun) {
  NumberAndUnit parts = split(text);
  const std::string shown(trim(text));
  if (!parts.why.empty()) return {{}, fmt::format("'{}' is not a whole number of at least 0", shown), {}};
  double factor = 1;
  for (const Unit& suffix : kCountSuffixes) {
    const std::string_view name = suffix.name;
    const std::string_view rest = parts.unit.substr(std::min(name.size(), parts.unit.size()));
    if (!parts.unit.starts_with(name) || !(rest.empty() || rest.front() == ' ')) continue;
    factor = suffix.factor;
    parts.unit = trim(rest);
    break;
  }
  if (!parts.unit.empty() && parts.unit != noun) {
    const std::string accepted = noun.empty() ? "a plain number" : fmt::format("a plain number or '{}'", noun);
    const std::string hint = noun.empty() ? std::string() : did_you_mean(parts.unit, {std::string(noun)});
    return {{}, fmt::format("unknown word '{}' after the number; write {}", parts.unit, accepted), hint};
  }
  const std::optional<std::int64_t> count = multiply(parts, factor).exact;
  if (!count) return {{}, fmt::format("'{}' is not a whole number below 2^63", shown), {}};
  return {*count, {}, {}};
}

std::string to_text(Bytes b) {
  constexpr std::pair<const char*, int> kBinary[] = {{"PiB", 50}, {"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto& [name, shift] : kBinary) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (b.count() != 0 && b.count() % unit == 0) return fmt::format("{} {}", b.count() / unit, name);
  }
  return fmt::format("{} B", b.count());
}

std::string to_text(Time t) {
  constexpr std::pair<const char*, std::int64_t> kDecimal[] = {
      {"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}};
  for (const auto& [name, unit] : kDecimal)
    if (t.picoseconds() != 0 && t.picoseconds() % unit == 0) return fmt::format("{} {}", t.picoseconds() / unit, name);
  return fmt::format("{} ps", t.picoseconds());
}

std::string to_text(Bandwidth w) {
  constexpr const char* kPreferred[] = {"TB/s", "GB/s", "MB/s", "KB/s"};
  return write_double(w.value(), kBandwidthUnits, kPreferred);
}

std::string to_text(FlopRate r) {
  constexpr const char* kPreferred[] = {"PFLOP/s", "TFLOP/s", "GFLOP/s", "MFLOP/s"};
  return write_double(r.value(), kFlopRateUnits, kPreferred);
}

std::string to_text(Flops f) {
  constexpr const char* kPreferred[] = {"EFLOP", "PFLOP", "TFLOP", "GFLOP", "MFLOP"};
  return write_double(f.value(), kFlopUnits, kPreferred);
}

}  // namespace k3sim
