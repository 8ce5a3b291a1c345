// Cross-validated errors over families and over whole sources, with two lookup predictors as the floor to stand above.
// Source: validate_cross.h; issue of the accuracy promise (medians of other runs by GPU, precision and kind).
#include "tools/commands/validate_cross.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/commands/cross_tables.h"
#include "tools/commands/interval_tables.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/report/table_report.h"
#include "tools/validation/error_intervals.h"
#include "tools/validation/model_validation.h"
#include "tools/validation/software_fit.h"

namespace k3sim {

namespace {

ErrorSummary score(std::vector<double> errors) {
  for (double& e : errors) e *= 100;
  return summarize_percentages(errors);
}

// Median TFLOP/s of the other families of the same kind, turned into a step time: what no simulator may lose against.
std::vector<double> lookup_errors(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases, bool source) {
  const auto key = [&](const Case& c) {
    return fmt::format("{}|{}|{}|{}", c.gpu, c.precision, c.model.experts > 0, source ? c.group : "");
  };
  const auto rate = [&](const CaseSurrogate& s) {
    const Case& c = cases[s.row];
    const double flops = c.gflops_causal.value_or(0) * c.gbs.value_or(0) * static_cast<double>(c.model.sequence);
    return flops / c.gpus / std::exp(s.log_measured);
  };
  std::vector<double> errors;
  for (const CaseSurrogate& s : all) {
    std::vector<double> rates;
    for (const CaseSurrogate& other : all)
      if (other.family != s.family && key(cases[other.row]) == key(cases[s.row])) rates.push_back(rate(other));
    if (rates.empty() || rate(s) <= 0) continue;
    std::sort(rates.begin(), rates.end());
    errors.push_back(rate(s) / rates[rates.size() / 2] - 1.0);
  }
  return errors;
}

using Filter = bool (*)(const Case&);
struct Slice {
  const char* name;
  Filter keep;
};

bool sixteen_bit(const Case& c) {
  return c.precision.find("16") != std::string::npos && c.precision.find("fp8") == std::string::npos;
}

constexpr Slice kSlices[] = {
    {"all", [](const Case&) { return true; }},
    {"tiers A and B", [](const Case& c) { return c.tier != "C"; }},
    {"tier A, BF16/FP16", [](const Case& c) { return c.tier == "A" && sixteen_bit(c); }},
    {"MoE, tiers A and B", [](const Case& c) { return c.tier != "C" && c.model.experts > 0; }},
};

// Compared by the peers without any calibration (peers notes 3.4).
constexpr Slice kVtrain{"vTrain, A100, several nodes",
                        [](const Case& c) { return c.group == "vtrain" && c.gpus > c.gpus_per_node; }};

CsvTable score_table() {
  return CsvTable(
      {{"cases", "text", "which cases are scored", "publication"},
       {"constants", "text", "which constants predicted them"},
       {"n", "1", "number of cases", "publication"},
       {"median_abs_error_pct", "%", "median absolute error of the step time", "prediction and publication"},
       {"mean_abs_error_pct", "%", "mean absolute error", "prediction and publication"},
       {"p90_abs_error_pct", "%", "90th percentile of it", "prediction and publication"},
       {"bias_pct", "%", "mean signed error", "prediction and publication"}});
}

void write_report(const std::string& folder, const CsvTable& csv, NamedTables tables, const CommandContext& context) {
  const std::vector<std::string>& held_out = csv.rows().at(1);
  TableReport r;
  r.title = "Validation with constants that have not seen the case";
  r.answer = fmt::format(
      "{} published runs, constants of the other families: median absolute error {:.1f} %, 90 % below {:.1f} %",
      held_out[2], std::stod(held_out[3]), std::stod(held_out[5]));
  r.table = page_table("scores", "Absolute error of the step time", "prediction and publication", csv);
  r.notes = {
      "Held-out families: the constants of the software stacks are fitted without the family of the case that is "
      "scored, in five folds; held-out sources: without everything from its publication.",
      "Nominal: the middle of the ranges that the hardware notes give for every constant, the same for all stacks.",
      "Lookup: the median TFLOP/s of other runs of the same GPU, precision and kind, the floor to stand above."};
  r.command = context.command;
  OutputFolder out(folder);
  tables.insert(tables.begin(), {"cross_validation.csv", csv});
  add_results(out, tables, build_table_report(r));
  out.commit();
}

}  // namespace

int run_cross_validation(const std::vector<Case>& cases, int threads, const std::string& folder,
                         CommandContext& context) {
  const std::vector<CaseSurrogate> all = case_surrogates(cases, threads);
  struct Method {
    const char* name;
    std::vector<double> errors;
  };
  std::vector<double> shipped;
  for (const CaseSurrogate& s : all) shipped.push_back(std::exp(s.log_shipped - s.log_measured) - 1.0);
  const std::vector<Method> methods{{"shipped constants (fitted on all)", shipped},
                                    {"held-out families, five folds", cross_validate(all, HoldOut::family)},
                                    {"held-out sources", cross_validate(all, HoldOut::source)}};
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  TextTable table({"cases", "constants", "n", "median %", "mean %", "p90 %", "bias %"});
  CsvTable csv = score_table();
  const auto add = [&](const std::string& slice, const std::string& method, const ErrorSummary& s) {
    table.add({slice, method, fmt::format("{}", s.predicted), fmt::format("{:.1f}", s.median_abs),
               fmt::format("{:.1f}", s.mean_abs), fmt::format("{:.1f}", s.p90_abs), fmt::format("{:+.1f}", s.bias)});
    csv.add({slice, method, fmt::format("{}", s.predicted), csv_number(s.median_abs), csv_number(s.mean_abs),
             csv_number(s.p90_abs), csv_number(s.bias)});
    j.push_back({{"cases", slice},
                 {"constants", method},
                 {"n", s.predicted},
                 {"median_abs_error_pct", s.median_abs},
                 {"mean_abs_error_pct", s.mean_abs},
                 {"p90_abs_error_pct", s.p90_abs},
                 {"bias_pct", s.bias}});
  };
  const auto sliced = [&](const Slice& slice, const std::vector<double>& of) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (slice.keep(cases[all[i].row])) errors.push_back(of[i]);
    return score(errors);
  };
  for (const Slice& slice : kSlices)
    for (const Method& m : methods) add(slice.name, m.name, sliced(slice, m.errors));
  std::vector<double> nominal;
  for (const CaseSurrogate& s : all) nominal.push_back(std::exp(s.before_fitting() - s.log_measured) - 1.0);
  add(kVtrain.name, "nominal, fitted to no training run", sliced(kVtrain, nominal));
  add("all", "lookup: median TFLOP/s by GPU, precision, kind", score(lookup_errors(all, cases, false)));
  add("all", "lookup: the same, knowing the source", score(lookup_errors(all, cases, true)));
  const std::vector<IntervalCoverage> intervals = error_intervals(all, cases, methods[1].errors, methods[2].errors);
  if (!folder.empty())
    write_report(folder, csv,
                 {{"intervals.csv", interval_table(intervals)},
                  {"held_out.csv", held_out_table(all, cases, methods[1].errors, methods[2].errors)},
                  {"surrogates.csv", surrogate_table(all, cases)},
                  {"software_constants.csv", constants_table(all)}},
                 context);
  if (context.json)
    context.out << nlohmann::ordered_json{{"cross_validation", j}, {"intervals", interval_json(intervals)}}.dump(2)
                << "\n";
  else
    context.out << table.to_text() << "\n" << interval_text(intervals);
  return 0;
}

}  // namespace k3sim
