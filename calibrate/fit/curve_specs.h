// What is fitted for each curve key: form, parameters with starting values and prior strengths, fewest rows.
// Starting values follow from the datasheet: rates are shares of the matrix peak, bandwidths shares of HBM.
// Source: hardware notes 1.3, 1.4, 5 (shares that Hopper and Ampere measurements agree on); k3-facts 4.5 (chain
// shares).
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/log_fit.h"
#include "models/cost/gpu_profile.h"

namespace k3sim {

struct NamedParameter {
  std::string name;
  LogParameter value;
};

struct CurveSpec {
  std::string form;
  int fewest_rows = 0;                     // 0: unknown key
  std::vector<NamedParameter> parameters;  // nonlinear forms
  std::vector<std::string> linear_terms;   // linear form: fixed_us, bw_hbm, half_width, rate_peak
  double fastest_bw = 0;                   // linear form: bound of bw_hbm in TB/s; 0: none
};

CurveSpec curve_spec(const std::string& key, const GpuLimits& limits);

}  // namespace k3sim
