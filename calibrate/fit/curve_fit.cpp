// Source: curve_fit.h.
#include "calibrate/fit/curve_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/fit/curve_specs.h"
#include "calibrate/fit/nnls.h"
#include "models/cost/curve.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

using Rows = std::vector<const KernelRow*>;

std::vector<double> predict(const CostCurve& c, const Rows& rows) {
  const std::unique_ptr<const Curve> curve = make_curve(c);
  std::vector<double> out;
  for (const KernelRow* r : rows) out.push_back(curve->microseconds(r->kernel));
  return out;
}

CostCurve fit_nonlinear(const CurveSpec& spec, const Rows& rows) {
  std::vector<LogParameter> parameters;
  std::vector<double> measured;
  for (const NamedParameter& p : spec.parameters) parameters.push_back(p.value);
  for (const KernelRow* r : rows) measured.push_back(r->measurement.median_us);
  CostCurve curve;
  curve.form = spec.form;
  const auto assign = [&](const std::vector<double>& values) {
    for (std::size_t j = 0; j < values.size(); ++j) curve.coefficients[spec.parameters[j].name] = values[j];
  };
  const Predictor trial = [&](const std::vector<double>& values) {
    assign(values);
    return predict(curve, rows);
  };
  assign(fit_logarithmic(parameters, measured, trial));
  for (const NamedParameter& p : spec.parameters)
    if (p.name == "sms") curve.coefficients[p.name] = std::round(curve.coefficients[p.name]);
  return curve;
}

// The column of a linear term: what its (possibly inverse) coefficient multiplies.
double column(const std::string& term, const Kernel& k) {
  if (term == "fixed_us") return 1.0;
  CostCurve one;
  one.form = "linear";
  one.coefficients = {{"fixed_us", 0.0}};
  if (term == "rate_peak") one.coefficients["rate_peak"] = 1.0;
  if (term == "bw_hbm" || term == "half_width") one.coefficients["bw_hbm"] = 1.0;
  const double t = make_curve(one)->microseconds(k);
  return term == "half_width" ? t * static_cast<double>(k.n) : t;
}

CostCurve linear_curve(const std::vector<std::string>& terms, const std::vector<double>& x, const Rows& rows) {
  CostCurve c;
  c.form = "linear";
  std::map<std::string, double> value;
  for (std::size_t j = 0; j < terms.size(); ++j) value[terms[j]] = x[j];
  c.coefficients["fixed_us"] = value["fixed_us"];
  if (value["rate_peak"] > 0) c.coefficients["rate_peak"] = 1.0 / value["rate_peak"];
  if (value["bw_hbm"] > 0) {
    c.coefficients["bw_hbm"] = 1.0 / value["bw_hbm"];
    if (value["half_width"] > 0) {
      c.coefficients["half_width"] = value["bw_hbm"] / value["half_width"];
      std::vector<double> widths;
      for (const KernelRow* r : rows) widths.push_back(static_cast<double>(r->kernel.n));
      c.coefficients["usual_width"] = quantile_of(widths, 0.5);
    }
  }
  return c;
}

// Repeats that scatter (a busy host, clocks on the move) count less: half at 10 % between p20 and p80.
double steadiness(const Measurement& m) {
  constexpr double kScatter = 0.1;
  const double spread = m.p80_us > 0 ? (m.p80_us - m.p20_us) / m.median_us : 0.0;
  return 1.0 / (1.0 + spread * spread / (kScatter * kScatter));
}

// One weighted round. Bandwidth cannot exceed 1.05 of HBM: that share of the traffic is taken off the right side first.
CostCurve linear_round(const CurveSpec& spec, const Rows& rows, const std::vector<double>& weight) {
  LinearProblem p;
  p.columns = static_cast<int>(spec.linear_terms.size());
  double least = 0.0;
  for (const std::string& term : spec.linear_terms)
    if (term == "bw_hbm" && spec.fastest_bw > 0) least = 1.0 / spec.fastest_bw;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double w = std::sqrt(weight[i]) / rows[i]->measurement.median_us;
    for (const std::string& term : spec.linear_terms) p.matrix.push_back(w * column(term, rows[i]->kernel));
    const double taken = least > 0 ? least * column("bw_hbm", rows[i]->kernel) : 0.0;
    p.right.push_back(w * (rows[i]->measurement.median_us - taken));
  }
  std::vector<double> x = solve_nnls(p);
  for (std::size_t j = 0; j < x.size(); ++j)
    if (spec.linear_terms[j] == "bw_hbm") x[j] += least;
  return linear_curve(spec.linear_terms, x, rows);
}

CostCurve fit_linear(const CurveSpec& spec, const Rows& rows) {
  constexpr int kRounds = 6;
  constexpr double kScale = 0.05;
  std::vector<double> weight;
  for (const KernelRow* r : rows) weight.push_back(steadiness(r->measurement));
  CostCurve curve;
  for (int round = 0; round < kRounds; ++round) {
    curve = linear_round(spec, rows, weight);
    const std::vector<double> t = predict(curve, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double r = (t[i] / rows[i]->measurement.median_us - 1.0) / kScale;
      weight[i] = steadiness(rows[i]->measurement) / std::sqrt(1.0 + r * r);
    }
  }
  return curve;
}

CostCurve fit_spec(const CurveSpec& spec, const Rows& rows) {
  return spec.form == "linear" ? fit_linear(spec, rows) : fit_nonlinear(spec, rows);
}

}  // namespace

double quantile_of(std::vector<double> v, double q) {
  if (v.empty()) return 0.0;
  std::sort(v.begin(), v.end());
  const double place = q * static_cast<double>(v.size() - 1);
  const std::size_t low = static_cast<std::size_t>(place), high = std::min(low + 1, v.size() - 1);
  return v[low] + (place - static_cast<double>(low)) * (v[high] - v[low]);
}

FamilyErrors summarize_errors(const std::vector<double>& ratios) {
  FamilyErrors e;
  e.n = static_cast<int>(ratios.size());
  if (ratios.empty()) return e;
  std::vector<double> absolute, signed_error, inverse;
  for (const double r : ratios) {
    absolute.push_back(std::abs(r - 1.0));
    signed_error.push_back(r - 1.0);
    inverse.push_back(1.0 / r);
  }
  e.median = quantile_of(absolute, 0.5);
  e.p90 = quantile_of(absolute, 0.9);
  e.worst = quantile_of(absolute, 1.0);
  e.bias = quantile_of(signed_error, 0.5);
  e.p95_ratio = std::max(1.0, quantile_of(inverse, 0.95));
  return e;
}

int fewest_rows(const std::string& curve) {
  return curve_spec(curve, GpuLimits{}).fewest_rows;
}

CostCurve fit_curve(const std::string& key, const Rows& rows, const GpuLimits& limits) {
  const CurveSpec spec = curve_spec(key, limits);
  CS_CHECK(spec.fewest_rows > 0, "no curve is called '{}'", key);
  CostCurve curve = fit_spec(spec, rows);
  curve.rows = static_cast<int>(rows.size());
  curve.provenance = Provenance::fitted;
  curve.work_min = 1e300;
  for (const KernelRow* r : rows) {
    curve.work_min = std::min(curve.work_min, kernel_work(r->kernel));
    curve.work_max = std::max(curve.work_max, kernel_work(r->kernel));
  }
  return curve;
}

std::vector<double> cross_validate(const std::string& key, const Rows& rows, const GpuLimits& limits) {
  const CurveSpec spec = curve_spec(key, limits);
  std::map<std::string, int> fold_of;
  for (const KernelRow* r : rows) fold_of[r->shape_family] = 0;
  int index = 0;
  for (auto& [family, fold] : fold_of) fold = index++ % kFolds;
  std::vector<double> held_out(rows.size(), 0.0);
  for (int fold = 0; fold < kFolds; ++fold) {
    Rows kept, left;
    for (const KernelRow* r : rows) (fold_of[r->shape_family] == fold ? left : kept).push_back(r);
    if (left.empty() || kept.empty()) continue;
    const std::vector<double> t = predict(fit_spec(spec, kept), left);
    std::size_t next = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (fold_of[rows[i]->shape_family] == fold) held_out[i] = t[next++];
  }
  return held_out;
}

}  // namespace k3sim
