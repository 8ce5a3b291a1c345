// A comma-separated table with a header line and '#' comments; quoted cells may hold commas (RFC 4180 without embedded
// line breaks). For the small measurement tables of tools/validation. Source: product-spec section 5.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace k3sim {

struct CsvRow {
  std::string file;
  int line = 0;
  std::map<std::string, std::string> cells;
  // Throws ConfigError naming file, line and column when the cell is missing or no number.
  const std::string& text(const std::string& column) const;
  double number(const std::string& column) const;
};

// Throws ConfigError when the file cannot be read or a row has another number of cells than the header.
std::vector<CsvRow> read_simple_csv(const std::string& path);

// "a=1;b=2" -> value of key; `fallback` when the key is not there.
double key_value(const std::string& text, const std::string& key, double fallback);

}  // namespace k3sim
