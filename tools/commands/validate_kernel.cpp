// See the header. JSON keys as for every kind of validation, with the group as the table's id.
// Source: product-spec section 7.
#include "tools/commands/validate_kernel.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/config/data_files.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/commands/validation_files.h"
#include "tools/validation/published_validation.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<PublishedPrediction>;

Json to_json(const PublishedPrediction& r) {
  const KernelPrediction& p = r.prediction;
  const bool done = p.compared();
  return Json{{"id", r.id},
              {"group", r.table},
              {"tier", "A"},
              {"family", p.family},
              {"kind", "kernel"},
              {"status", done ? "predicted" : "skipped"},
              {"reason", p.reason},
              {"metric", "time_us"},
              {"measured", done ? Json(p.measured_us) : Json(nullptr)},
              {"predicted", done ? Json(p.predicted_us) : Json(nullptr)},
              {"error_pct", done ? Json(100 * p.error()) : Json(nullptr)},
              {"gpu", r.gpu},
              {"kernel", p.kernel},
              {"pass", p.pass},
              {"params", p.params},
              {"provenance", done ? Json(to_string(p.provenance)) : Json(nullptr)},
              {"calibration", r.calibration}};
}

FamilyErrors errors_of(const Rows& rows) {
  std::vector<double> ratios;
  for (const PublishedPrediction& r : rows)
    if (r.prediction.compared()) ratios.push_back(r.prediction.predicted_us / r.prediction.measured_us);
  return summarize_errors(ratios);
}

Json to_json(const Rows& rows) {
  Json cases = Json::array();
  for (const PublishedPrediction& r : rows) cases.push_back(to_json(r));
  const FamilyErrors e = errors_of(rows);
  return Json{{"cases", cases},
              {"summary",
               {{"predicted", e.n},
                {"skipped", rows.size() - static_cast<std::size_t>(e.n)},
                {"median_abs_error_pct", 100 * e.median},
                {"p90_abs_error_pct", 100 * e.p90},
                {"bias_pct", 100 * e.bias}}}};
}

void print_tables(const Rows& rows, std::ostream& out) {
  std::map<std::string, Rows> groups;
  for (const PublishedPrediction& r : rows)
    groups[r.prediction.compared() ? r.gpu + "  " + r.prediction.family : "skipped"].push_back(r);
  TextTable table({"GPU and family", "rows", "median %", "p90 %", "bias %", "fitted to such rows"});
  for (const auto& [name, members] : groups) {
    if (name == "skipped") continue;
    const FamilyErrors e = errors_of(members);
    table.add({name, fmt::to_string(e.n), fmt::format("{:.1f}", 100 * e.median), fmt::format("{:.1f}", 100 * e.p90),
               fmt::format("{:+.1f}", 100 * e.bias), members.front().calibration ? "yes" : ""});
  }
  out << table.to_text() << '\n';
  std::map<std::string, int> reasons;
  for (const PublishedPrediction& r : groups["skipped"]) ++reasons[r.prediction.reason];
  for (const auto& [why, n] : reasons) out << fmt::format("skipped {:4}  {}\n", n, why);
}

}  // namespace

int run_validate_kernel(const std::vector<std::string>& files, const std::string& folder, CommandContext& context) {
  std::vector<std::string> sources = files;
  if (sources.empty())
    sources = {data_path("scenarios/validation/kernels.yaml"), data_path("scenarios/measurements/h200_kernels.csv")};
  Rows rows;
  for (const std::string& f : sources)
    for (PublishedPrediction& r : predict_published(f)) rows.push_back(std::move(r));
  if (!folder.empty()) {
    const FamilyErrors e = errors_of(rows);
    std::vector<ValidationRow> cases;
    for (const auto& r : rows) cases.push_back(validation_row(r));
    write_validation(folder, "kernels", cases,
                     {"Times of single kernels. 'Fitted to such rows': the curve of that GPU was fitted to rows of "
                      "this file; the others are independent."},
                     {e.n, static_cast<int>(rows.size()) - e.n, 100 * e.median, 100 * e.p90, 100 * e.bias, 0}, context);
  }
  if (context.json) return context.out << to_json(rows).dump(2) << '\n', 0;
  print_tables(rows, context.out);
  return 0;
}

}  // namespace k3sim
