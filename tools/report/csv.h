// CSV tables whose columns say their name, unit and meaning once: header line and data dictionary come from the same
// list. RFC 4180: CRLF line ends, fields with comma, quote or line break in quotes, quotes doubled; missing is empty.
// Source: RFC 4180; product-spec section 2.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace k3sim {

struct CsvColumn {
  std::string name;  // with the unit as its last part: step_s, reserved_bytes, share_pct
  std::string unit;  // "s", "byte", "%"; "1" for plain numbers, "text" for words
  std::string what;
};

class CsvTable {
 public:
  explicit CsvTable(std::vector<CsvColumn> columns) : columns_(std::move(columns)) {}

  // Requires: one field per column.
  void add(std::vector<std::string> fields);
  std::string text() const;
  const std::vector<CsvColumn>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<CsvColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string csv_field(std::string_view text);  // in quotes when needed
std::string csv_number(double v);              // 9 significant digits; empty for NaN and infinity

// Columns file, column, unit, meaning: one row per column of every table.
std::string data_dictionary_csv(const std::vector<std::pair<std::string, const CsvTable*>>& tables);

// Reads a whole table; the first record is the header. Throws ConfigError (file, line) for stray quotes and records of
// another width.
struct CsvData {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
CsvData parse_csv(std::string_view text, const std::string& file);

}  // namespace k3sim
