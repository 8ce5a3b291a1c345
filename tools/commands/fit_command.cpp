// Reads measurements, fits, prints the held-out errors per curve, writes the profile.
// Source: product-spec sections 2 and 5; calibrate/fit.
#include "tools/commands/fit_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "calibrate/fit/merge_files.h"
#include "calibrate/fit/profile_fit.h"
#include "calibrate/fit/scale_curves.h"
#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/text_table.h"
#include "tools/import/trace_rows.h"
#include "tools/validation/measured_kernels.h"

namespace k3sim {

namespace {

using Json = nlohmann::ordered_json;

struct Input {
  FitConditions conditions;
  std::vector<KernelRow> rows;
  std::vector<std::string> notes;
};

MeasurementTable read_trace(const FitCommandOptions& o, std::ostream& err) {
  const KinetoTrace trace = load_kineto(o.kineto);
  TraceRows rows;
  if (o.scenario.empty()) {
    rows = rows_of_trace(trace, o.kineto, nullptr, nullptr, 0);
  } else {
    const Scenario scenario = load_scenario(o.scenario, o.set);
    const Machine machine = load_machine(scenario);
    rows = rows_of_trace(trace, o.kineto, &scenario, &machine, 0);
  }
  for (const std::string& s : rows.skipped) err << "note: left out: " << s << '\n';
  if (rows.rows.empty())
    throw ConfigError(o.scenario.empty() ? "no kernel with recorded shapes; name what ran with --scenario"
                                         : "no kernel of the trace could be paired with a predicted one",
                      "", {o.kineto, 0, 0});
  if (!o.rows.empty()) {
    std::string text;
    for (const std::string& line : rows.header) text += "# " + line + "\n";
    text += std::string(kMeasurementColumns) + "\n";
    for (const Measurement& m : rows.rows) text += to_csv_line(m) + "\n";
    write_file_atomically(o.rows, text);
  }
  return {std::move(rows.header), std::move(rows.rows)};
}

Input read_input(const FitCommandOptions& o, std::ostream& err) {
  Input in;
  std::vector<MeasurementTable> tables;
  std::vector<std::string> files;
  if (!o.kineto.empty()) files.push_back(o.kineto), tables.push_back(read_trace(o, err));
  for (const std::string& f : o.files) files.push_back(f), tables.push_back(read_measured_kernels(f, o.base));
  for (std::size_t i = 0; i < files.size(); ++i) {
    in.conditions.files.push_back(files[i].substr(files[i].find_last_of('/') + 1));
    for (const std::string& line : tables[i].header) in.conditions.header.push_back(line);
  }
  MergedMeasurements merged = merge_measurements(tables, files);
  in.notes = std::move(merged.notes);
  in.rows = kernel_rows(merged.rows);
  in.conditions.rows = static_cast<int>(in.rows.size());
  for (const KernelRow& r : in.rows) in.conditions.fitted_rows += r.usable() ? 1 : 0;
  return in;
}

Json curves_json(const GpuProfile& p) {
  Json out = Json::array();
  for (const auto& [name, c] : p.curves)
    if (!c.inherited)
      out.push_back({{"curve", name},
                     {"form", c.form},
                     {"n", c.rows},
                     {"median_abs_error_pct", 100 * c.median_error},
                     {"p90_abs_error_pct", 100 * c.p90_error},
                     {"p95_ratio", c.p95_ratio}});
  return out;
}

Json scaled_json(const std::vector<ScaledCurve>& scaled) {
  Json out = Json::array();
  for (const ScaledCurve& s : scaled)
    out.push_back({{"curve", s.key}, {"n", s.rows}, {"ratio", s.ratio}, {"median_abs_error_pct", 100 * s.error}});
  return out;
}

void print_curves(const GpuProfile& p, const FitConditions& c, const std::vector<ScaledCurve>& scaled,
                  std::ostream& out) {
  if (!scaled.empty()) {
    TextTable few({"scaled curve", "rows", "measured / base", "error after %"});
    for (const ScaledCurve& s : scaled)
      few.add({s.key, fmt::to_string(s.rows), fmt::format("{:.3f}", s.ratio), fmt::format("{:.1f}", 100 * s.error)});
    out << few.to_text() << '\n';
  }
  out << fmt::format("{} of {} rows fitted; errors of held-out shape families\n\n", c.fitted_rows, c.rows);
  TextTable table({"curve", "form", "rows", "median %", "p90 %", "p95 ratio"});
  for (const auto& [name, curve] : p.curves)
    if (!curve.inherited)
      table.add({name, curve.form, fmt::to_string(curve.rows), fmt::format("{:.1f}", 100 * curve.median_error),
                 fmt::format("{:.1f}", 100 * curve.p90_error), fmt::format("{:.2f}", curve.p95_ratio)});
  out << table.to_text();
}

void name_skipped_rows(const std::vector<KernelRow>& rows, std::ostream& err) {
  for (const KernelRow& r : rows)
    if (!r.usable() && r.reason.rfind("host-bound", 0) == 0)
      err << fmt::format("note: {} left out: {}\n", r.measurement.id.key(), r.reason);
}

}  // namespace

int run_fit_command(const FitCommandOptions& o, std::ostream& out, std::ostream& err) {
  if (o.files.empty() && o.kineto.empty()) throw UsageError("fit needs measurement files or --from-kineto TRACE");
  const std::string source = o.files.empty() ? o.kineto : o.files.front();
  Input in = read_input(o, err);
  std::string base = o.base.empty() ? base_profile_for(in.conditions.header) : o.base;
  if (base.empty())
    throw ConfigError("no '# gpu:' line that names a known GPU; choose the profile to start from with --base", "",
                      {source, 0, 0});
  GpuProfile start = load_gpu_profile(base);
  std::vector<ScaledCurve> scaled;
  if (!o.kineto.empty()) scaled = scale_sparse_curves(start, in.rows);
  ProfileFit fit = fit_profile(start, in.rows, source);
  if (!o.sustained_from.empty()) take_power_limit(fit.profile, load_gpu_profile(o.sustained_from));
  if (!o.name.empty()) fit.profile.limits.name = o.name;
  for (const std::string& note : in.notes) err << "note: " << note << '\n';
  name_skipped_rows(in.rows, err);
  write_file_atomically(o.out, profile_yaml(fit.profile, in.conditions));
  if (o.json)
    out << Json{{"profile", o.out},
                {"base", base},
                {"rows", in.conditions.rows},
                {"fitted_rows", in.conditions.fitted_rows},
                {"scaled", scaled_json(scaled)},
                {"curves", curves_json(fit.profile)}}
               .dump()
        << '\n';
  else
    print_curves(fit.profile, in.conditions, scaled, out);
  return 0;
}

void add_fit_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "fit", "fit kernel cost models to measurements",
                                  "k3sim fit measurements.csv --out my_h200.yaml");
  const auto o = std::make_shared<FitCommandOptions>();
  command->add_option("files", o->files, "measurement files written by k3sim calibrate, or published tables (.yaml)");
  command->add_option("--from-kineto", o->kineto, "PyTorch profiler trace whose kernels are measurements, too");
  command->add_option("--scenario", o->scenario, "what that trace ran, when its shapes were not recorded");
  add_set_option(*command, o->set);
  command->add_option("--rows", o->rows, "file for the rows made of the trace");
  command->add_option("--out", o->out, "profile to write")->required();
  command->add_option("--base", o->base, "profile with the datasheet values; default: by the GPU's name");
  command->add_option("--sustained-from", o->sustained_from,
                      "profile whose power limit replaces that of the fit, for tables of short bursts");
  command->add_option("--name", o->name, "name of the new profile; default: the base's");
  add_json_flag(*command, context);
  command->callback([o, &context] {
    o->json = context.json;
    context.exit_code = run_fit_command(*o, context.out, context.err);
  });
}

}  // namespace k3sim
