// Source: product-spec section 2; see text_table.h.
#include "tools/commands/text_table.h"

#include <algorithm>

namespace k3sim {
namespace {

bool looks_numeric(const std::string& cell) {
  const std::size_t at = cell.find_first_not_of("+-~<>= ");
  return at == std::string::npos || (cell[at] >= '0' && cell[at] <= '9');
}

// Counts code points, so that a micro sign or a multiplication sign does not shift a column.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string blanks(width - width_of(cell), ' ');
  return right ? blanks + cell : cell + blanks;
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  row.resize(std::max(row.size(), header_.size()));
  rows_.push_back(std::move(row));
}

std::string TextTable::to_text(bool colour) const {
  const std::size_t columns = header_.size();
  std::vector<std::size_t> width(columns);
  std::vector<bool> right(columns, true);
  for (std::size_t c = 0; c < columns; ++c) {
    width[c] = width_of(header_[c]);
    for (const auto& row : rows_) {
      width[c] = std::max(width[c], width_of(row[c]));
      right[c] = right[c] && looks_numeric(row[c]);
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < columns; ++c) text += (c ? "  " : "") + padded(cells[c], width[c], right[c]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string out = colour ? "\033[1m" + line(header_) + "\033[0m\n" : line(header_) + "\n";
  for (const auto& row : rows_) out += line(row) + "\n";
  return out;
}

}  // namespace k3sim
