// Prints rows and families as tables, CSV or JSON (keys: product-spec section 7).
// Source: product-spec sections 2 and 7; tools/validation/kernel_validation.h.
#include "tools/commands/kernels_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/text_table.h"
#include "tools/report/csv.h"
#include "tools/validation/kernel_validation.h"
#include "tools/validation/measured_kernels.h"
#include "tools/validation/measurement_agreement.h"

namespace k3sim {

namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double v) {
  return v > 0 ? Json(v) : Json(nullptr);
}

Json row_json(const KernelPrediction& p) {
  Json j{{"family", p.family}, {"kernel", p.kernel}, {"pass", p.pass}, {"dtype", p.dtype}, {"params", p.params}};
  j["measured_us"] = number_or_null(p.measured_us);
  j["predicted_us"] = number_or_null(p.predicted_us);
  j["error_pct"] = p.compared() ? Json(100.0 * p.error()) : Json(nullptr);
  j["provenance"] = p.predicted_us > 0 ? Json(to_string(p.provenance)) : Json(nullptr);
  if (!p.reason.empty()) j["reason"] = p.reason;
  return j;
}

Json to_json(const std::vector<KernelPrediction>& predictions) {
  Json rows = Json::array(), families = Json::array();
  for (const KernelPrediction& p : predictions) rows.push_back(row_json(p));
  for (const FamilySummary& f : summarize_families(predictions))
    families.push_back({{"family", f.family},
                        {"n", f.errors.n},
                        {"median_abs_error_pct", 100 * f.errors.median},
                        {"p90_abs_error_pct", 100 * f.errors.p90},
                        {"worst_abs_error_pct", 100 * f.errors.worst},
                        {"bias_pct", 100 * f.errors.bias}});
  return Json{{"rows", rows}, {"families", families}};
}

std::string cell(double v) {
  return v > 0 ? fmt::format("{:.1f}", v) : std::string();
}

std::vector<std::string> row_cells(const KernelPrediction& p) {
  return {p.family,
          p.kernel,
          p.pass,
          p.params,
          cell(p.measured_us),
          cell(p.predicted_us),
          p.compared() ? fmt::format("{:+.1f}", 100 * p.error()) : std::string(),
          p.predicted_us > 0 ? to_string(p.provenance) : p.reason.c_str()};
}

void print_rows(const std::vector<KernelPrediction>& predictions, std::ostream& out) {
  TextTable table({"family", "kernel", "pass", "shape", "measured us", "predicted us", "error %", "provenance"});
  for (const KernelPrediction& p : predictions) table.add(row_cells(p));
  out << table.to_text() << '\n';
}

void print_families(const std::vector<KernelPrediction>& predictions, std::ostream& out) {
  TextTable table({"family", "rows", "median %", "p90 %", "worst %", "bias %"});
  for (const FamilySummary& f : summarize_families(predictions))
    table.add({f.family, fmt::to_string(f.errors.n), fmt::format("{:.1f}", 100 * f.errors.median),
               fmt::format("{:.1f}", 100 * f.errors.p90), fmt::format("{:.1f}", 100 * f.errors.worst),
               fmt::format("{:+.1f}", 100 * f.errors.bias)});
  if (!table.empty()) out << table.to_text();
}

std::string to_csv(const std::vector<KernelPrediction>& predictions) {
  CsvTable out({{"family", "text", "kind of kernel"},
                {"kernel", "text", "name of the kernel"},
                {"pass", "text", "forward or backward"},
                {"dtype", "text", "precision"},
                {"params", "text", "sizes, NAME=VALUE joined by semicolons"},
                {"measured_us", "us", "measured time; empty: none", "measurement"},
                {"predicted_us", "us", "predicted time; empty: no prediction"},
                {"error_pct", "%", "predicted over measured minus one", "prediction and measurement"},
                {"provenance", "text", "tier of the cost"},
                {"reason", "text", "why there is no prediction"}});
  for (const KernelPrediction& p : predictions)
    out.add({p.family, p.kernel, p.pass, p.dtype, p.params,
             p.measured_us > 0 ? fmt::format("{:.3f}", p.measured_us) : "",
             p.predicted_us > 0 ? fmt::format("{:.3f}", p.predicted_us) : "",
             p.compared() ? fmt::format("{:.2f}", 100 * p.error()) : "",
             p.predicted_us > 0 ? to_string(p.provenance) : "", p.reason});
  return out.text();
}

Json to_json(const AgreementGroup& g) {
  Json j{{"kernel", g.group}, {"n", g.rows}, {"latency_rows", g.latency_rows}, {"within_5_pct", g.within_5_pct}};
  if (g.rows > 0)
    j.update({{"median_abs_difference_pct", 100 * g.median},
              {"p90_abs_difference_pct", 100 * g.p90},
              {"bias_pct", 100 * g.bias}});
  return j;
}

int print_agreement(const KernelsCommandOptions& o, std::ostream& out) {
  const std::string gpu = o.gpu.empty() ? std::string("h200_sxm") : o.gpu;
  const std::vector<AgreementRow> rows =
      compare_measurements(read_measured_kernels(o.measured, gpu).rows, read_measured_kernels(o.against, gpu).rows);
  if (rows.empty())
    throw ConfigError("no kernel, shape and pass stands in both files; they cannot be compared", "",
                      {o.measured, 0, 0});
  const std::vector<AgreementGroup> groups = summarize_agreement(rows);
  if (o.json) {
    Json list = Json::array();
    for (const AgreementGroup& g : groups) list.push_back(to_json(g));
    out << Json{{"measured", o.measured}, {"against", o.against}, {"kernels", list}}.dump() << '\n';
    return 0;
  }
  TextTable table({"section,kernel,pass", "rows", "median %", "p90 %", "bias %", "within 5 %", "latency rows"});
  for (const AgreementGroup& g : groups) {
    const auto percent = [&](double v) { return g.rows > 0 ? fmt::format("{:.1f}", 100 * v) : std::string(); };
    table.add({g.group, fmt::to_string(g.rows), percent(g.median), percent(g.p90),
               g.rows > 0 ? fmt::format("{:+.1f}", 100 * g.bias) : "", fmt::to_string(g.within_5_pct),
               fmt::to_string(g.latency_rows)});
  }
  out << table.to_text();
  return 0;
}

std::vector<KernelPrediction> predict(const KernelsCommandOptions& o) {
  const GpuProfile profile = load_gpu_profile(o.gpu);
  if (o.measured.empty()) return predict_usual_kernels(profile);
  const std::vector<KernelRow> rows = kernel_rows(read_measured_kernels(o.measured, profile.limits.name).rows);
  return o.cross_validate ? predict_held_out(profile, rows, o.measured) : predict_rows(profile, rows);
}

}  // namespace

int run_kernels_command(const KernelsCommandOptions& o, std::ostream& out) {
  if (o.cross_validate && o.measured.empty())
    throw UsageError("--cross-validate refits the curves and needs --measured FILE");
  if (!o.against.empty()) {
    if (o.measured.empty()) throw UsageError("--against FILE compares with --measured FILE, which is missing");
    return print_agreement(o, out);
  }
  if (o.gpu.empty()) throw UsageError("kernels needs --gpu NAME (or --measured FILE --against FILE)");
  const std::vector<KernelPrediction> predictions = predict(o);
  if (!o.csv.empty()) write_file_atomically(o.csv, to_csv(predictions));
  if (o.json) {
    out << to_json(predictions).dump() << '\n';
    return 0;
  }
  if (o.rows || o.measured.empty()) print_rows(predictions, out);
  print_families(predictions, out);
  return 0;
}

void add_kernels_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "kernels", "predicted kernel times, and their errors against measurements",
                                  "k3sim kernels --gpu h200_sxm --measured measurements.csv");
  const auto o = std::make_shared<KernelsCommandOptions>();
  command->add_option("--gpu", o->gpu, "name or file of a GPU profile");
  command->add_option("--measured", o->measured, "measurement file written by k3sim calibrate");
  command->add_option("--against", o->against, "second measurement file: prints how far the two agree, per kernel");
  command->add_option("--csv", o->csv, "write the rows to this file, too");
  command->add_flag("--rows", o->rows, "print every row, not only the errors per family");
  command->add_flag("--cross-validate", o->cross_validate,
                    "refit the curves five times, each time predicting the shape families left out");
  add_json_flag(*command, context);
  command->callback([o, &context] {
    o->json = context.json;
    context.exit_code = run_kernels_command(*o, context.out);
  });
}

}  // namespace k3sim
