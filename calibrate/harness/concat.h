// concat("M=", m, ";N=", n): text from values, for code that nvcc compiles (the fmt 9 headers do not pass through it).
// Whole numbers print in full, doubles with six significant digits.
// Source: standard streams, classic locale by default.
#pragma once

#include <sstream>
#include <string>

namespace k3sim {

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace k3sim
