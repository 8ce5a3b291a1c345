// The TOML that configuration files use: [tables], dotted keys, strings, numbers, booleans and arrays of them,
// comments. Not read: dates, multi-line strings, inline tables and arrays of tables (a ConfigError with the line).
// Source: TOML 1.0.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace k3sim {

struct TomlValue {
  std::vector<std::string> values;  // one, or the elements of an array
  int line = 0;
};

// "table.key" -> value. A later assignment of the same key is an error.
std::map<std::string, TomlValue> read_toml(const std::string& text, const std::string& file);

}  // namespace k3sim
