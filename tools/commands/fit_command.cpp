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
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/text_table.h"
#include "tools/validation/measured_kernels.h"

namespace k3sim {

namespace {

using Json = nlohmann::ordered_json;

struct Input {
  FitConditions conditions;
  std::vector<KernelRow> rows;
  std::vector<std::string> notes;
};

Input read_input(const std::vector<std::string>& files, const std::string& base) {
  Input in;
  std::vector<MeasurementTable> tables;
  for (const std::string& f : files) {
    tables.push_back(read_measured_kernels(f, base));
    in.conditions.files.push_back(f.substr(f.find_last_of('/') + 1));
    for (const std::string& line : tables.back().header) in.conditions.header.push_back(line);
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

void print_curves(const GpuProfile& p, const FitConditions& c, std::ostream& out) {
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
  Input in = read_input(o.files, o.base);
  std::string base = o.base.empty() ? base_profile_for(in.conditions.header) : o.base;
  if (base.empty())
    throw ConfigError("no '# gpu:' line that names a known GPU; choose the profile to start from with --base", "",
                      {o.files.front(), 0, 0});
  ProfileFit fit = fit_profile(load_gpu_profile(base), in.rows, o.files.front());
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
                {"curves", curves_json(fit.profile)}}
               .dump()
        << '\n';
  else
    print_curves(fit.profile, in.conditions, out);
  return 0;
}

void add_fit_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "fit", "fit kernel cost models to measurements",
                                  "k3sim fit measurements.csv --out my_h200.yaml");
  const auto o = std::make_shared<FitCommandOptions>();
  command->add_option("files", o->files, "measurement files written by k3sim calibrate, or published tables (.yaml)")
      ->required();
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
