// CSV tables whose columns say their name, unit, meaning and source once: header line, data dictionary and the tables
// of reports come from the same list. RFC 4180: CRLF line ends, fields with comma, quote or line break in quotes,
// quotes doubled; missing is empty. Source: RFC 4180; product-spec section 2.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace k3sim {

struct CsvColumn {
  std::string name;  // with the unit as its last part: step_s, reserved_bytes, share_pct
  std::string unit;  // "s", "byte", "%"; "1" for plain numbers, "text" for words, "mixed" when another column says it
  std::string what;
  std::string source = "prediction";  // or scenario, profile, measurement, publication, search: where the value is from
};
std::string csv_header(const std::vector<CsvColumn>& columns);   // ends with CRLF
std::string csv_record(const std::vector<std::string>& fields);  // ends with CRLF
std::vector<std::string> csv_names(const std::vector<CsvColumn>& columns);

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

// Columns file, column, unit, source, meaning: one row per column of every file.
struct CsvFile {
  std::string name;
  std::vector<CsvColumn> columns;
};
std::string data_dictionary_csv(const std::vector<CsvFile>& files);

// Reads a whole table; the first record is the header. Throws ConfigError (file, line) for stray quotes and records of
// another width.
struct CsvData {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
CsvData parse_csv(std::string_view text, const std::string& file);

}  // namespace k3sim
