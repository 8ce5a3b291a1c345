// A whole GPU profile from measurements: every curve that has rows is fitted and cross-validated, constants (host link,
// launch cost, overlap slow-down) are read off their rows, everything else is kept from the base profile.
// Source: engine-design section 14; hardware notes 3.6 (interference), 4.1 (host link), 5.5 (launch).
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/curve_fit.h"
#include "calibrate/fit/kernel_rows.h"
#include "models/cost/gpu_profile.h"

namespace k3sim {

struct HeldOut {
  const KernelRow* row = nullptr;
  double predicted_us = 0;
};

struct ProfileFit {
  GpuProfile profile;
  std::vector<HeldOut> held_out;  // every fitted row, predicted without its shape family
};

// "fit" of a profile file: where the rows came from.
struct FitConditions {
  std::vector<std::string> files;
  std::vector<std::string> header;  // '#' lines of the measurement files: GPU, software, method, date
  int rows = 0, fitted_rows = 0;
};

// Throws ConfigError naming the rows when they are too few or contradict each other.
ProfileFit fit_profile(const GpuProfile& base, const std::vector<KernelRow>& rows, const std::string& file);

// Published tables hold short bursts that never reach the power limit. This takes the power-limit terms of the
// BF16 products from a profile measured warm, on a GPU of the same silicon and power (FP8 tables show no burst rates).
void take_power_limit(GpuProfile& profile, const GpuProfile& warm);

// The base profile that fits a "gpu:" header line ("NVIDIA H200 (SXM, ...)" -> h200_sxm); empty when none does.
std::string base_profile_for(const std::vector<std::string>& header);

std::string profile_yaml(const GpuProfile& profile, const FitConditions& conditions);

}  // namespace k3sim
