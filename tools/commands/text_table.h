// Plain-text tables: a header, rows of cells, two blanks between columns; numbers aligned right, words left. A column
// is numeric when every non-empty cell starts like a number. The bold header is used on a terminal only. Source:
// product-spec section 2 (results on stdout).
#pragma once

#include <string>
#include <vector>

namespace k3sim {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row);  // shorter rows are filled up with empty cells
  bool empty() const { return rows_.empty(); }
  std::string to_text(bool colour = false) const;  // ends with a newline

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace k3sim
