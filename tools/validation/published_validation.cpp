// Source: published_validation.h.
#include "tools/validation/published_validation.h"

#include <fmt/format.h>

#include <map>

#include "calibrate/fit/profile_fit.h"
#include "calibrate/harness/measurement_file.h"
#include "sim/base/error.h"
#include "tools/validation/published_kernels.h"

namespace k3sim {

namespace {

bool is_yaml(const std::string& file) {
  return file.size() > 5 && file.compare(file.size() - 5, 5, ".yaml") == 0;
}

std::vector<PublishedRow> rows_of(const std::string& file) {
  if (is_yaml(file)) return published_kernel_rows(file);
  MeasurementTable table = read_measurements(file);
  const std::string gpu = base_profile_for(table.header);
  if (gpu.empty()) throw ConfigError("no '# gpu:' line that names a known GPU", "", {file, 0, 0});
  std::vector<PublishedRow> rows;
  const std::string name = file.substr(file.find_last_of('/') + 1);
  for (Measurement& m : table.rows) rows.push_back({name, gpu, std::move(m), {}});
  return rows;
}

}  // namespace

std::vector<PublishedPrediction> predict_published(const std::string& file) {
  std::vector<PublishedPrediction> out;
  std::map<std::string, std::vector<std::size_t>> by_gpu;  // places in `out` still to be predicted
  std::map<std::string, std::vector<Measurement>> measured;
  std::map<std::string, int> row_number;
  for (PublishedRow& r : rows_of(file)) {
    PublishedPrediction p;
    p.table = r.table;
    p.gpu = r.gpu;
    p.id = fmt::format("{}#{}", r.table, ++row_number[r.table]);
    p.prediction.reason = r.reason;
    if (r.reason.empty()) {
      by_gpu[r.gpu].push_back(out.size());
      measured[r.gpu].push_back(std::move(r.measurement));
    }
    out.push_back(std::move(p));
  }
  for (const auto& [gpu, places] : by_gpu) {
    const std::vector<KernelPrediction> predictions = predict_rows(load_gpu_profile(gpu), kernel_rows(measured[gpu]));
    for (std::size_t i = 0; i < places.size(); ++i) {
      out[places[i]].prediction = predictions[i];
      out[places[i]].calibration = predictions[i].provenance == Provenance::fitted;
    }
  }
  return out;
}

}  // namespace k3sim
