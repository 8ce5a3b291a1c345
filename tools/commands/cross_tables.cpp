// See cross_tables.h. Source: there.
#include "tools/commands/cross_tables.h"

#include <cmath>

namespace k3sim {

CsvTable held_out_table(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases,
                        const std::vector<double>& family, const std::vector<double>& source) {
  CsvTable t({{"id", "text", "case", "publication"},
              {"source", "text", "publication of the case", "publication"},
              {"family", "text", "one model, cluster and study", "publication"},
              {"software", "text", "profile of its software stack", "profile"},
              {"measured_s", "s", "measured step time", "publication"},
              {"shipped_error_pct", "%", "error with the shipped constants", "prediction and publication"},
              {"held_out_family_error_pct", "%", "error without its family", "prediction and publication"},
              {"held_out_source_error_pct", "%", "error without its source", "prediction and publication"}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const CaseSurrogate& s = all[i];
    t.add({cases[s.row].id, s.source, s.family, s.stack, csv_number(std::exp(s.log_measured)),
           csv_number(100 * (std::exp(s.log_shipped - s.log_measured) - 1)), csv_number(100 * family[i]),
           csv_number(100 * source[i])});
  }
  return t;
}

CsvTable surrogate_table(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases) {
  std::vector<CsvColumn> columns{{"id", "text", "case", "publication"},
                                 {"nominal_s", "s", "step time with the nominal constants", "prediction"}};
  for (const char* name : software_constant_names()) {
    columns.push_back({std::string(name) + "_slope", "1", "d log time / d log constant", "prediction"});
    columns.push_back({std::string(name) + "_curvature", "1", "second derivative", "prediction"});
  }
  for (const char* times : {"2", "4", "8"})
    columns.push_back(
        {std::string("host_time_x") + times, "1", "log time over nominal, host time times this", "prediction"});
  CsvTable t(columns);
  for (const CaseSurrogate& s : all) {
    std::vector<std::string> row{cases[s.row].id, csv_number(std::exp(s.log_predicted))};
    for (std::size_t k = 0; k < kSoftwareConstants; ++k) {
      row.push_back(csv_number(s.slope[k]));
      row.push_back(csv_number(s.curvature[k]));
    }
    for (const double rise : s.host_rise) row.push_back(csv_number(rise));
    t.add(row);
  }
  return t;
}

CsvTable constants_table(const std::vector<CaseSurrogate>& all) {
  std::vector<CsvColumn> columns{{"software", "text", "profile of a software stack", "profile"}};
  for (const char* name : software_constant_names())
    columns.push_back({name, "1", "value for the profile; host_time: factor on its times", "prediction"});
  CsvTable t(columns);
  const SoftwareFit fit = fit_software(all, std::vector<char>(all.size(), 1));
  const auto add = [&](const std::string& name, const Constants& x) {
    std::vector<std::string> row{name};
    for (std::size_t k = 0; k < kSoftwareConstants; ++k)
      row.push_back(csv_number(nominal_constant(k) * std::exp(x[k])));
    t.add(row);
  };
  for (const auto& [stack, x] : fit.stacks) add(stack, x);
  add("default", fit.all);
  return t;
}

}  // namespace k3sim
