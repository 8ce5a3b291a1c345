// Source: measured_kernels.h. Tables that timed other shapes' launch floors or other libraries' kernels are not taken.
#include "tools/validation/measured_kernels.h"

#include <fmt/format.h>

#include <set>

#include "sim/base/error.h"
#include "tools/validation/published_kernels.h"

namespace k3sim {

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

MeasurementTable read_measured_kernels(const std::string& file, const std::string& gpu) {
  if (!ends_with(file, ".yaml")) return read_measurements(file);
  const std::string wanted = gpu == "a100_sxm_80" ? "a100_sxm" : gpu;
  MeasurementTable out;
  std::set<std::string> tables, keys;
  for (PublishedRow& r : published_kernel_rows(file)) {
    if (!r.reason.empty() || r.gpu != wanted) continue;
    if (!keys.insert(r.measurement.id.key()).second) continue;  // the first of several tables with this shape
    tables.insert(r.table);
    out.rows.push_back(std::move(r.measurement));
  }
  if (out.rows.empty())
    throw ConfigError(fmt::format("no published kernel row of GPU '{}' (choose it with --base or --gpu)", gpu), "",
                      {file, 0, 0});
  out.header.push_back("gpu: " + gpu);
  for (const std::string& t : tables) out.header.push_back("table: " + t);
  return out;
}

}  // namespace k3sim
