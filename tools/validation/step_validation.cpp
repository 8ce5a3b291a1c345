#include "tools/validation/step_validation.h"

#include <fmt/format.h>

#include "models/build/machine_loader.h"
#include "sim/base/error.h"
#include "tools/validation/simple_csv.h"
#include "tools/validation/two_gpu_steps.h"

namespace k3sim {

namespace {

constexpr const char* kGpu = "h200_sxm";

TwoGpuStep predict_row(const TwoGpuSteps& steps, const CsvRow& row) {
  const std::string& name = row.text("case");
  const std::string& params = row.text("params");
  const auto number = [&](const char* key) {
    const double v = key_value(params, key, -1);
    if (v <= 0) throw ConfigError(fmt::format("'{}=' is missing", key), "params", {row.file, row.line, 0});
    return v;
  };
  const auto tokens = static_cast<std::int64_t>(number("tokens"));
  if (name == "stage_alone") return steps.stage_alone(static_cast<int>(number("layers")), tokens);
  if (name == "pp2_1f1b")
    return steps.pipeline(static_cast<int>(number("layers_per_stage")), static_cast<int>(number("microbatches")),
                          tokens);
  if (name == "dp2_ddp") return steps.ddp(static_cast<int>(number("layers")), tokens, number("bucket_mb") * 1048576.0);
  if (name == "fsdp2") return steps.fsdp(static_cast<int>(number("layers")), tokens);
  if (name == "ep2_latent_moe") return steps.expert_parallel(tokens);
  throw ConfigError("unknown case '" + name + "'", "case", {row.file, row.line, 0});
}

}  // namespace

std::vector<ValidationRow> validate_steps(const std::string& csv_path) {
  Scenario s;
  s.cluster.gpu = kGpu;
  s.software = "pytorch_eager";
  const Machine machine = load_machine(s);
  const TwoGpuSteps steps(machine);
  std::vector<ValidationRow> rows;
  for (const CsvRow& csv : read_simple_csv(csv_path)) {
    const TwoGpuStep p = predict_row(steps, csv);
    ValidationRow r;
    r.id = csv.text("case") + ";" + csv.text("params");
    r.group = r.family = csv.text("case");
    r.tier = "A";
    r.kind = "step";
    r.gpu = kGpu;
    r.status = "predicted";
    r.metric = "time_us";
    r.measured = csv.number("median_us");
    r.predicted = p.seconds * 1e6;
    rows.push_back(r);
    r.kind = "memory";
    for (int rank = 0; rank < 2; ++rank) {
      const std::string column = fmt::format("peak_alloc_bytes_rank{}", rank);
      if (csv.text(column).empty()) continue;
      r.metric = fmt::format("peak_allocated_bytes_rank{}", rank);
      r.measured = csv.number(column);
      r.predicted = p.peak_bytes[rank];
      rows.push_back(r);
    }
  }
  return rows;
}

}  // namespace k3sim
