// The explorer of the rows of a search or sweep: settings and predictions of every configuration, with the command that
// runs a chosen one alone. Source: product-spec sections 2 and 3.
#pragma once

#include <string>
#include <vector>

#include "models/config/space.h"
#include "tools/report/html_page.h"

namespace k3sim {

// Rows with named columns.
struct ResultRows {
  const std::vector<CsvColumn>& columns;
  const std::vector<std::vector<std::string>>& rows;

  std::size_t column(const std::string& name) const;  // requires: there is one
  const std::string& text(std::size_t row, const std::string& name) const { return rows[row][column(name)]; }
  double number(std::size_t row, const std::string& name) const;  // NaN when empty
};

// Above this many rows a page keeps those with the least step times.
inline constexpr std::size_t kMostExplored = 20'000;

PageExplorer space_explorer(const SearchSpace& space, const ResultRows& rows, const std::string& id);

// The folder of a space.yaml, else the file's name without its ending.
std::string space_name(const SearchSpace& space);

// "parallel.tp=1 parallel.pp=8": the axes of a row that have several values, without the sections' names.
std::string settings_text(const SearchSpace& space, const ResultRows& rows, std::size_t row);

// Step time with its error bar, MFU and memory of a row.
std::string row_answer(const ResultRows& rows, std::size_t row);
// The key figures of a row, with the keys of summary.json.
std::vector<PageFigure> row_figures(const ResultRows& rows, std::size_t row);

// How many configurations every rule removed: one row per reason that occurs.
PageTable reasons_table(const std::vector<std::pair<std::string, std::int64_t>>& counts, std::int64_t all);

// "k3sim VERSION gives these numbers again:", the command, and the space.
void add_space_reproduction(HtmlPage& page, const SearchSpace& space, const std::string& command,
                            const std::string& hint = {});

}  // namespace k3sim
