// Writes a profile in the form that load_gpu_profile reads. Coefficients keep five digits: far more than their error.
// Source: hardware_profiles/README.md (fields).
#include <fmt/format.h>

#include "calibrate/fit/profile_fit.h"

namespace k3sim {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string curve_yaml(const std::string& name, const CostCurve& c) {
  std::string out = fmt::format(
      "  {}:\n    form: {}\n    provenance: {}\n    rows: {}\n    work_min: {:.4g}\n    work_max: {:.4g}\n"
      "    median_error: {:.4f}\n    p90_error: {:.4f}\n    p95_ratio: {:.4f}\n",
      name, c.form, to_string(c.provenance), c.rows, c.work_min, c.work_max, c.median_error, c.p90_error, c.p95_ratio);
  if (!c.note.empty()) out += fmt::format("    note: {}\n", quoted(c.note));
  out += "    coefficients:\n";
  for (const auto& [key, value] : c.coefficients) out += fmt::format("      {}: {:.5g}\n", key, value);
  return out;
}

std::string head_yaml(const GpuProfile& p) {
  const GpuLimits& l = p.limits;
  std::string out = fmt::format("name: {}\narchitecture: {}\nsource: {}\n", l.name, p.architecture, quoted(p.source));
  out += fmt::format(
      "datasheet: {{sm_count: {}, bf16_dense: {:.6g} TFLOP/s, fp8_dense: {:.6g} TFLOP/s, fp32: {:.6g} TFLOP/s, hbm: "
      "{:.6g} TB/s, "
      "usable_memory: {:.6g} GiB, tdp_watt: {:.0f}}}\n",
      l.sm_count, l.bf16_dense.value() / kTera, l.fp8_dense.value() / kTera, p.fp32.value() / kTera,
      l.hbm.value() / kTera, l.usable_memory.gibibytes(), p.tdp_watt);
  out +=
      fmt::format("host_link: {{single: {:.4g} GB/s, both: {:.4g} GB/s, all_busy: {:.4g} GB/s, latency: {:.4g} us}}\n",
                  p.host.single.value() / kGB, p.host.both.value() / kGB, p.host.all_busy.value() / kGB,
                  p.host.latency.microseconds());
  out += fmt::format("price_per_gpu_hour: {}\ncollectives: {}\n", l.price_per_gpu_hour, p.collectives);
  out += fmt::format("kda: {}\nattention: {}\n", p.kda, p.attention);
  out += fmt::format("launch: {{host: {:.4g} us, eager: {:.4g} us, gap: {:.4g} us}}\n", p.launch.host.microseconds(),
                     p.launch.eager.microseconds(), p.launch.gap.microseconds());
  const OverlapSlowdown& s = p.slowdown;
  out += fmt::format(
      "slowdown: {{compute_beside_host_copy: {:.4g}, compute_beside_hbm_copy: {:.4g}, "
      "compute_beside_all_reduce: {:.4g}, compute_beside_all_to_all: {:.4g}, memory_beside_comm: {:.4g}}}\n",
      s.compute_beside_host_copy, s.compute_beside_hbm_copy, s.compute_beside_all_reduce, s.compute_beside_all_to_all,
      s.memory_beside_comm);
  if (!p.borrow.from.empty())
    out += fmt::format(
        "borrow: {{from: {}, compute: {:.5g}, memory: {:.5g}, clock: {:.5g}, throttle: {:.5g}, note: {}}}\n",
        p.borrow.from, p.borrow.compute, p.borrow.memory, p.borrow.clock, p.borrow.throttle, quoted(p.borrow.note));
  return out;
}

}  // namespace

std::string profile_yaml(const GpuProfile& profile, const FitConditions& conditions) {
  std::string out = fmt::format("# {}: kernel costs fitted by `k3sim fit`.\n", profile.limits.name);
  out += "# Fields and units: hardware_profiles/README.md. Errors are those of held-out shape families.\n";
  out += head_yaml(profile);
  out += fmt::format("fit:\n  rows: {}\n  fitted_rows: {}\n  folds: {}\n  files:\n", conditions.rows,
                     conditions.fitted_rows, kFolds);
  for (const std::string& f : conditions.files) out += fmt::format("    - {}\n", quoted(f));
  out += "  conditions:\n";
  for (const std::string& line : conditions.header) out += fmt::format("    - {}\n", quoted(line));
  out += "curves:\n";
  for (const auto& [name, curve] : profile.curves)
    if (!curve.inherited) out += curve_yaml(name, curve);
  return out;
}

}  // namespace k3sim
