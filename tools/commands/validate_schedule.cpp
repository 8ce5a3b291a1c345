// See validate_schedule.h. JSON keys as for every kind of validation, and the parts of the DualPipe step.
// Source: product-spec section 7.
#include "tools/commands/validate_schedule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/commands/validation_files.h"
#include "tools/validation/schedule_validation.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<ValidationRow>;

ErrorSummary errors_of(const Rows& rows, const std::string& kind, const std::string& group) {
  std::vector<const ValidationRow*> members;
  for (const ValidationRow& r : rows)
    if (r.kind == kind && (group.empty() || r.group == group)) members.push_back(&r);
  return summarize_errors(members);
}

void print(std::ostream& out, const Rows& rows, const std::vector<StepPart>& parts) {
  TextTable cases({"case", "metric", "measured", "predicted", "error %", "note"});
  for (const ValidationRow& r : rows) {
    const bool done = r.status == "predicted";
    cases.add({r.id, r.metric, done ? fmt::format("{:.4g}", r.measured) : "-",
               done ? fmt::format("{:.4g}", r.predicted) : "-", done ? fmt::format("{:+.1f}", r.error_pct()) : "-",
               r.reason});
  }
  out << cases.to_text() << '\n';
  TextTable medians({"kind", "source", "predicted", "skipped", "median %", "p90 %", "bias %"});
  for (const char* kind : {"speed", "memory", "step", "pair"})
    for (const char* group : {"", "zero-bubble", "vocabulary-parallelism", "controllable-memory-pp"}) {
      const ErrorSummary s = errors_of(rows, kind, group);
      if (s.predicted + s.skipped == 0) continue;
      medians.add({kind, *group ? group : "all", fmt::to_string(s.predicted), fmt::to_string(s.skipped),
                   fmt::format("{:.1f}", s.median_abs), fmt::format("{:.1f}", s.p90_abs),
                   fmt::format("{:+.1f}", s.bias)});
    }
  out << medians.to_text() << '\n';
  TextTable step({"DualPipe step of 2,048 H800", "measured s", "predicted s"});
  for (const StepPart& p : parts)
    step.add({p.name, fmt::format("{:.2f}", p.measured_s), fmt::format("{:.2f}", p.predicted_s)});
  out << step.to_text();
}

Json summary_json(const ErrorSummary& s) {
  return {{"predicted", s.predicted},
          {"skipped", s.skipped},
          {"median_abs_error_pct", s.median_abs},
          {"p90_abs_error_pct", s.p90_abs},
          {"bias_pct", s.bias}};
}

Json to_json(const Rows& rows, const std::vector<StepPart>& parts) {
  Json cases = Json::array(), step = Json::array();
  for (const ValidationRow& r : rows) {
    const bool done = r.status == "predicted";
    cases.push_back({{"id", r.id},
                     {"group", r.group},
                     {"tier", r.tier},
                     {"family", r.family},
                     {"kind", r.kind},
                     {"status", r.status},
                     {"reason", r.reason},
                     {"metric", r.metric},
                     {"measured", done ? Json(r.measured) : Json(nullptr)},
                     {"predicted", done ? Json(r.predicted) : Json(nullptr)},
                     {"error_pct", done ? Json(r.error_pct()) : Json(nullptr)}});
  }
  for (const StepPart& p : parts)
    step.push_back({{"part", p.name}, {"measured_s", p.measured_s}, {"predicted_s", p.predicted_s}});
  return {{"cases", cases},
          {"summary",
           {{"speed", summary_json(errors_of(rows, "speed", ""))},
            {"memory", summary_json(errors_of(rows, "memory", ""))},
            {"step", summary_json(errors_of(rows, "step", ""))},
            {"pair", summary_json(errors_of(rows, "pair", ""))}}},
          {"dualpipe_step", step}};
}

PageTable step_table(const std::vector<StepPart>& parts) {
  PageTable t{"dualpipe_step",
              "Parts of the DualPipe step of DeepSeek-V3 on 2,048 H800",
              "prediction and publication",
              {{"part", "part", "", "as in table 4 of arXiv:2505.09343", true, false, "publication"},
               {"measured_s", "measured", "s", "mean of the published runs", false, false, "publication"},
               {"predicted_s", "predicted", "s", "mean over pipeline ranks", false, false, "prediction"}},
              {}};
  for (const StepPart& p : parts) t.rows.push_back({p.name, csv_number(p.measured_s), csv_number(p.predicted_s)});
  return t;
}

}  // namespace

int run_validate_schedule(const std::vector<Case>& cases, int threads, const std::string& folder,
                          CommandContext& context) {
  const Rows rows = validate_schedules(cases, threads);
  const std::vector<StepPart> parts = dualpipe_parts(cases);
  if (!folder.empty()) {
    ValidationPageInput page;
    page.what = "schedules";
    for (const ValidationRow& r : rows) page.rows.push_back(&r);
    page.notes = {
        "Speed: time of a schedule over that of 1F1B for the same model and machine; memory, step and pair as "
        "their metric says."};
    page.more.push_back(step_table(parts));
    write_validation(folder, std::move(page), context);
  }
  if (context.json)
    context.out << to_json(rows, parts).dump(2) << '\n';
  else
    print(context.out, rows, parts);
  return 0;
}

}  // namespace k3sim
