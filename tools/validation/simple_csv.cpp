#include "tools/validation/simple_csv.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "sim/base/error.h"

namespace k3sim {

namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

}  // namespace

const std::string& CsvRow::text(const std::string& column) const {
  const auto it = cells.find(column);
  if (it == cells.end()) throw ConfigError("column is missing", column, {file, line, 0});
  return it->second;
}

double CsvRow::number(const std::string& column) const {
  const std::string& t = text(column);
  char* end = nullptr;
  const double v = std::strtod(t.c_str(), &end);
  if (t.empty() || *end != '\0') throw ConfigError("'" + t + "' is no number", column, {file, line, 0});
  return v;
}

std::vector<CsvRow> read_simple_csv(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw ConfigError("cannot read the file", {}, {path, 0, 0});
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#' || line == "\r") continue;
    const std::vector<std::string> cells = split(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells.size() != header.size())
      throw ConfigError(fmt::format("{} cells, the header has {}", cells.size(), header.size()), {}, {path, number, 0});
    CsvRow row{path, number, {}};
    for (std::size_t i = 0; i < cells.size(); ++i) row.cells[header[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  if (header.empty()) throw ConfigError("the file holds no table", {}, {path, 0, 0});
  return rows;
}

double key_value(const std::string& text, const std::string& key, double fallback) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    if (text.compare(at, key.size() + 1, key + "=") == 0 && at + key.size() + 1 <= end)
      return std::atof(text.substr(at + key.size() + 1, end - at - key.size() - 1).c_str());
    at = end + 1;
  }
  return fallback;
}

}  // namespace k3sim
