// Unit types: the only numbers that carry time, data, work and rates through the program.
//
//   Time       int64 picoseconds (range +-106 days)        Bytes   int64
//   Flops      double floating-point operations            Bandwidth  double bytes per second
//   FlopRate   double operations per second
//
// Only physical operators exist: Bytes / Bandwidth -> Time and Flops / FlopRate -> Time. Both round up once, in
// Time::from_seconds_ceil, from the ratio itself; no reciprocal is ever stored. GB = 1e9, GiB = 2^30.
// Rounding up is detail::ceil_to_int: 450 B at 450 GB/s are 1000 ps, although the double product is 1000.0000000000001.
// Source: engine-design notes section 3 (integer picoseconds, round once).
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace k3sim {

namespace detail {
// Least integer >= v, where v carries the error of a few double operations: a value within 2^-50 (relative) above an
// integer is that integer. Requires: 0 <= v < 2^63.
inline std::int64_t ceil_to_int(double v) {
  const double nearest = std::round(v);
  return static_cast<std::int64_t>(v - nearest <= v * 0x1p-50 && nearest <= v ? nearest : std::ceil(v));
}
}  // namespace detail

class Time {
 public:
  constexpr Time() = default;
  static constexpr Time ps(std::int64_t v) { return Time(v); }
  static constexpr Time ns(std::int64_t v) { return Time(v * 1'000); }
  static constexpr Time us(std::int64_t v) { return Time(v * 1'000'000); }
  static constexpr Time ms(std::int64_t v) { return Time(v * 1'000'000'000); }
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }
  // Rounds up to the next picosecond. Requires: s >= 0, finite and below 9e6 s.
  static Time from_seconds_ceil(double s) { return Time(detail::ceil_to_int(s * 1e12)); }
  static Time from_us(double us) { return from_seconds_ceil(us * 1e-6); }

  constexpr std::int64_t picoseconds() const { return ps_; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
  constexpr double microseconds() const { return static_cast<double>(ps_) * 1e-6; }
  constexpr double milliseconds() const { return static_cast<double>(ps_) * 1e-9; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time(a.ps_ + b.ps_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  friend constexpr Time operator*(Time a, std::int64_t n) { return Time(a.ps_ * n); }
  friend constexpr Time operator*(std::int64_t n, Time a) { return Time(a.ps_ * n); }
  // Scales by a dimensionless factor, rounding up. Requires: f >= 0.
  friend Time scale(Time a, double f) { return Time(detail::ceil_to_int(static_cast<double>(a.ps_) * f)); }
  friend constexpr double operator/(Time a, Time b) { return static_cast<double>(a.ps_) / static_cast<double>(b.ps_); }
  constexpr Time& operator+=(Time b) { return ps_ += b.ps_, *this; }
  constexpr Time& operator-=(Time b) { return ps_ -= b.ps_, *this; }

 private:
  explicit constexpr Time(std::int64_t v) : ps_(v) {}
  std::int64_t ps_ = 0;
};

class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::int64_t v) : v_(v) {}
  // Rounds up to whole bytes. Requires: v >= 0 and below 2^62.
  static Bytes ceil(double v) { return Bytes(detail::ceil_to_int(v)); }
  static constexpr Bytes kib(std::int64_t n) { return Bytes(n << 10); }
  static constexpr Bytes mib(std::int64_t n) { return Bytes(n << 20); }
  static constexpr Bytes gib(std::int64_t n) { return Bytes(n << 30); }

  constexpr std::int64_t count() const { return v_; }
  constexpr double as_double() const { return static_cast<double>(v_); }
  constexpr double gibibytes() const { return static_cast<double>(v_) / 1073741824.0; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.v_ + b.v_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.v_ - b.v_); }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.v_ * n); }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return Bytes(a.v_ * n); }
  friend constexpr double operator/(Bytes a, Bytes b) { return static_cast<double>(a.v_) / static_cast<double>(b.v_); }
  // Splits into n equal shares, rounding up. Requires: n > 0.
  constexpr Bytes share(std::int64_t n) const { return Bytes((v_ + n - 1) / n); }
  constexpr Bytes& operator+=(Bytes b) { return v_ += b.v_, *this; }
  constexpr Bytes& operator-=(Bytes b) { return v_ -= b.v_, *this; }

 private:
  std::int64_t v_ = 0;
};

namespace detail {
// A double that knows what it measures; Tag keeps operations, rates and bandwidths apart.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(double v) : v_(v) {}
  constexpr double value() const { return v_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.v_ + b.v_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.v_ - b.v_); }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.v_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.v_ * f); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.v_ / b.v_; }
  constexpr Quantity& operator+=(Quantity b) { return v_ += b.v_, *this; }

 private:
  double v_ = 0;
};
}  // namespace detail

using Flops = detail::Quantity<struct FlopsTag>;
using FlopRate = detail::Quantity<struct FlopRateTag>;    // operations per second
using Bandwidth = detail::Quantity<struct BandwidthTag>;  // bytes per second

// Requires: positive rate.
inline Time operator/(Bytes b, Bandwidth w) {
  return Time::from_seconds_ceil(b.as_double() / w.value());
}
inline Time operator/(Flops f, FlopRate r) {
  return Time::from_seconds_ceil(f.value() / r.value());
}

constexpr double kGB = 1e9;
constexpr double kTera = 1e12;

}  // namespace k3sim
