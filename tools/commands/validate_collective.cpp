// See the header. JSON keys as for every kind of validation, with the group as the table's id.
// Source: product-spec section 7.
#include "tools/commands/validate_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/config/data_files.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/commands/validation_files.h"
#include "tools/validation/collective_validation.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const CollectiveRow& r) {
  const bool done = r.predicted_row;
  return Json{{"id", r.id},
              {"group", r.table},
              {"tier", "A"},
              {"family", r.family},
              {"kind", "collective"},
              {"status", done ? "predicted" : "skipped"},
              {"reason", r.reason},
              {"metric", r.metric},
              {"measured", done ? Json(r.measured) : Json(nullptr)},
              {"predicted", done ? Json(r.predicted) : Json(nullptr)},
              {"error_pct", done ? Json(r.error_pct) : Json(nullptr)},
              {"operation", r.kind},
              {"gpu", r.gpu},
              {"ranks", r.ranks},
              {"nodes", r.nodes},
              {"bytes", r.bytes},
              {"calibration", r.calibration}};
}

Json to_json(const std::vector<CollectiveRow>& rows) {
  Json cases = Json::array(), families = Json::array();
  for (const CollectiveRow& r : rows) cases.push_back(to_json(r));
  const auto summaries = summarize(rows);
  for (const CollectiveSummary& s : summaries) {
    families.push_back({{"family", s.label},
                        {"n", s.rows},
                        {"independent", s.independent},
                        {"median_abs_error_pct", s.median_abs_error_pct},
                        {"p90_abs_error_pct", s.p90_abs_error_pct},
                        {"bias_pct", s.bias_pct},
                        {"independent_median_abs_error_pct", s.independent_median_pct}});
  }
  const CollectiveSummary& all = summaries.back();
  return Json{{"cases", cases},
              {"summary",
               {{"predicted", all.rows},
                {"skipped", rows.size() - all.rows},
                {"median_abs_error_pct", all.median_abs_error_pct},
                {"p90_abs_error_pct", all.p90_abs_error_pct},
                {"bias_pct", all.bias_pct}}},
              {"families", families}};
}

void print_tables(const std::vector<CollectiveRow>& rows, std::ostream& out) {
  std::map<std::string, std::vector<const CollectiveRow*>> by_table;
  for (const CollectiveRow& r : rows) by_table[r.table].push_back(&r);
  TextTable table({"table", "rows", "skipped", "median %", "largest %", "read into a profile"});
  for (const auto& [name, members] : by_table) {
    std::vector<double> errors;
    for (const CollectiveRow* r : members) {
      if (r->predicted_row) errors.push_back(std::abs(r->error_pct));
    }
    std::sort(errors.begin(), errors.end());
    const bool calibration = std::any_of(members.begin(), members.end(), [](auto* r) { return r->calibration; });
    table.add({name, fmt::to_string(errors.size()), fmt::to_string(members.size() - errors.size()),
               errors.empty() ? "" : fmt::format("{:.1f}", errors[errors.size() / 2]),
               errors.empty() ? "" : fmt::format("{:.1f}", errors.back()), calibration ? "yes" : ""});
  }
  out << table.to_text() << '\n';
  std::map<std::string, int> reasons;
  for (const CollectiveRow& r : rows) {
    if (!r.predicted_row) ++reasons[r.reason];
  }
  for (const auto& [why, n] : reasons) out << fmt::format("skipped {:4}  {}\n", n, why);
}

}  // namespace

int run_validate_collective(const std::vector<std::string>& files, const std::string& folder, CommandContext& context) {
  std::vector<std::string> sources = files;
  if (sources.empty()) {
    sources = {data_path("scenarios/validation/kernels.yaml"), data_path("scenarios/validation/h200_nccl.csv")};
  }
  std::vector<CollectiveRow> rows;
  for (const std::string& f : sources) {
    auto more = f.ends_with(".csv") ? validate_nccl_measurements(f) : validate_collective_tables(f);
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (!folder.empty()) {
    const CollectiveSummary all = summarize(rows).back();
    const int done = static_cast<int>(all.rows);
    std::vector<ValidationRow> cases;
    for (const auto& r : rows) cases.push_back(validation_row(r));
    write_validation(
        folder, "collectives", cases,
        {"Times of collectives and expert exchanges. 'Read into a profile': the curve came from this "
         "table; the others are independent."},
        {done, static_cast<int>(rows.size()) - done, all.median_abs_error_pct, all.p90_abs_error_pct, all.bias_pct, 0},
        context);
  }
  if (context.json) return context.out << to_json(rows).dump(2) << '\n', 0;
  context.out << to_text(summarize(rows)) << '\n';
  print_tables(rows, context.out);
  return 0;
}

}  // namespace k3sim
