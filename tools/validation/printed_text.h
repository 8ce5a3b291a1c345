// Words in what sources print, for the pieces that read the raw fields of cases. Source: our own.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace k3sim {

inline std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}
inline bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
inline bool starts(const std::string& text, const char* part) {
  return text.rfind(part, 0) == 0;
}

}  // namespace k3sim
