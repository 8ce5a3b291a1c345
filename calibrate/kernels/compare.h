// Distance between a result and its double-precision reference: ||out - ref|| / ||ref||. NaN never passes.
// Source: the usual relative Frobenius error; bf16 operands land between 1e-3 and 1e-2.
#pragma once

#include <cmath>
#include <vector>

#include "calibrate/kernels/device_buffer.h"

namespace k3sim {

inline double as_double(double x) {
  return x;
}
inline double as_double(float x) {
  return double(x);
}
inline double as_double(bf16 x) {
  return double(__bfloat162float(x));
}
inline double as_double(int x) {
  return double(x);
}

template <class A, class B>
double relative_error(const std::vector<A>& out, const std::vector<B>& ref) {
  if (out.size() != ref.size()) return std::nan("");
  double diff = 0, norm = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double d = as_double(out[i]) - as_double(ref[i]);
    diff += d * d;
    norm += as_double(ref[i]) * as_double(ref[i]);
  }
  return norm > 0 ? std::sqrt(diff / norm) : std::sqrt(diff);
}

template <class T>
std::vector<double> to_double(const std::vector<T>& v) {
  std::vector<double> out(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) out[i] = as_double(v[i]);
  return out;
}

// Reference inputs: what the kernel really read.
template <class T>
std::vector<double> download_double(const DeviceBuffer<T>& b) {
  return to_double(b.download());
}

}  // namespace k3sim
