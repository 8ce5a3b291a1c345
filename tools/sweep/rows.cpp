#include "tools/sweep/rows.h"

#include <fmt/format.h>

#include "sim/base/fingerprint.h"

namespace k3sim {

std::vector<CsvColumn> RowMaker::columns() const {
  std::vector<CsvColumn> out{{"id", "text", "digest of the settings", "scenario"},
                             {"status", "text", "predicted or rejected"},
                             {"reason", "text", "ok, or why the configuration does not work"}};
  for (const std::vector<CsvColumn>& more : {axis_columns(space_), summary_columns()})
    out.insert(out.end(), more.begin(), more.end());
  out.push_back({"note", "text", "details of the reason"});
  return out;
}

std::string RowMaker::header() const {
  return csv_header(columns());
}

std::string RowMaker::row(std::int64_t index) {
  const Evaluation e = evaluate(space_, index, machines_, options_);
  std::vector<std::string> cells{space_.id(index), e.simulated() ? "predicted" : "rejected", to_string(e.reason)};
  const std::vector<int> choice = space_.choice(index);
  for (std::size_t a = 0; a < choice.size(); ++a)
    cells.push_back(space_.axes()[a].values[static_cast<std::size_t>(choice[a])].text);
  const std::vector<std::string> numbers = e.simulated() ? summary_cells(e.scenario, e.prediction.summary)
                                                         : std::vector<std::string>(summary_columns().size());
  cells.insert(cells.end(), numbers.begin(), numbers.end());
  cells.push_back(e.text);
  return csv_line(cells);
}

std::string RowMaker::digest() const {
  Fingerprint f;
  f.add(std::string_view(space_.digest()));
  f.add(std::string_view(header()));
  f.add(static_cast<std::uint64_t>(options_.detail));
  f.add(static_cast<std::uint64_t>((options_.allow_assumed ? 1 : 0) + (options_.tp_across_nodes ? 2 : 0)));
  return fmt::format("{:016x}", f.value());
}

}  // namespace k3sim
