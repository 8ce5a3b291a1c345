// Source: profile_fit.h.
#include "calibrate/fit/profile_fit.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "calibrate/fit/data_check.h"

namespace k3sim {

namespace {

// A 95th percentile of a handful of rows says little: it never counts for more than that of an uncalibrated kernel.
constexpr int kRowsForQuantile = 8;
constexpr double kUnknownSpread = 1.4;

using Rows = std::vector<const KernelRow*>;

double median_of(const std::vector<KernelRow>& rows, const std::string& kernel) {
  std::vector<double> values;
  for (const KernelRow& r : rows)
    if (r.measurement.id.kernel == kernel) values.push_back(r.measurement.median_us);
  return quantile_of(values, 0.5);
}

// Time of the nearest lone run before a combined one: both come from the same warm GPU.
double lone_run_before(const std::vector<KernelRow>& rows, const std::string& combined, const std::string& lone) {
  double t = 0;
  for (const KernelRow& r : rows) {
    if (r.measurement.id.kernel == lone) t = r.measurement.median_us;
    if (r.measurement.id.kernel == combined) return t;
  }
  return 0;
}

void read_slowdown(const std::vector<KernelRow>& rows, const std::string& combined, const std::string& lone,
                   double& out) {
  const double both = median_of(rows, combined), alone = lone_run_before(rows, combined, lone);
  if (both > 0 && alone > 0) out = std::max(1.0, both / alone);
}

void read_constants(const std::vector<KernelRow>& rows, GpuProfile& p) {
  OverlapSlowdown& s = p.slowdown;
  read_slowdown(rows, "gemm_during_h2d_d2h", "gemm_alone", s.compute_beside_host_copy);
  read_slowdown(rows, "gemm_during_d2d", "gemm_alone", s.compute_beside_hbm_copy);
  read_slowdown(rows, "gemm12+all_reducex2", "gemm12", s.compute_beside_all_reduce);
  read_slowdown(rows, "gemm12+all_to_allx6", "gemm12", s.compute_beside_all_to_all);
  if (const double t = median_of(rows, "200_small_kernels"); t > 0) p.launch.eager = Time::from_us(t / 200.0);
  const auto rate = [&](const char* key) {
    const auto found = p.curves.find(key);
    return found == p.curves.end() ? 0.0 : found->second.at("bw_hbm") * kTera;
  };
  if (rate("copy_h2d") > 0 && rate("copy_d2h") > 0) {
    p.host.single = Bandwidth(std::min(rate("copy_h2d"), rate("copy_d2h")));
    p.host.latency = Time::from_us(p.curves.at("copy_h2d").at("fixed_us"));
  }
  if (rate("copy_both") > 0) p.host.both = Bandwidth(rate("copy_both") / 2);
}

}  // namespace

ProfileFit fit_profile(const GpuProfile& base, const std::vector<KernelRow>& rows, const std::string& file) {
  if (const std::vector<Problem> problems = check_measurements(rows, base.limits, file); !problems.empty())
    throw ConfigError(problems);
  ProfileFit out;
  out.profile = base;
  std::map<std::string, Rows> by_curve;
  for (const KernelRow& r : rows)
    if (r.usable()) by_curve[r.curve].push_back(&r);
  for (const auto& [key, part] : by_curve) {
    CostCurve curve = fit_curve(key, part, base.limits);
    const std::vector<double> held_out = cross_validate(key, part, base.limits);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (held_out[i] <= 0) continue;
      out.held_out.push_back({part[i], held_out[i]});
      ratios.push_back(held_out[i] / part[i]->measurement.median_us);
    }
    const FamilyErrors e = summarize_errors(ratios);
    curve.median_error = e.median;
    curve.p90_error = e.p90;
    curve.p95_ratio = e.n < kRowsForQuantile ? std::min(e.p95_ratio, kUnknownSpread) : e.p95_ratio;
    out.profile.curves[key] = curve;
  }
  read_constants(rows, out.profile);
  return out;
}

void take_power_limit(GpuProfile& profile, const GpuProfile& warm) {
  const auto own = profile.curves.find("gemm_bf16");
  const auto other = warm.curves.find("gemm_bf16");
  if (own == profile.curves.end() || own->second.inherited || other == warm.curves.end()) return;
  for (const char* term : {"throttle", "throttle_onset"}) own->second.coefficients[term] = other->second.at(term);
  own->second.note = "shapes from short-burst tables, power limit from " + warm.limits.name;
}

std::string base_profile_for(const std::vector<std::string>& header) {
  struct Known {
    const char* text;
    const char* profile;
  };
  // Longer names first: "GB200" contains "B200", "H200" and "H20" share a beginning.
  constexpr Known kKnown[] = {{"gb300", "gb300"},   {"gb200", "gb200"},      {"b200", "b200_sxm"},
                              {"h200", "h200_sxm"}, {"h100", "h100_sxm"},    {"h800", "h800_sxm"},
                              {"h20", "h20"},       {"a800", "a800_sxm_80"}, {"a100", "a100_sxm_80"}};
  for (const std::string& line : header) {
    if (line.rfind("gpu:", 0) != 0) continue;
    std::string lower = line.substr(0, line.find(','));
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const Known& k : kKnown)
      if (lower.find(k.text) != std::string::npos) return k.profile;
  }
  return {};
}

}  // namespace k3sim
