// Scenario and software profile -> SplitConfig of the layer programs. Source: program.h.
#pragma once

#include "models/build/software_profile.h"
#include "models/config/scenario.h"
#include "models/transformer/program.h"

namespace k3sim {

Dtype linear_dtype(const PrecisionConfig& precision);
SplitConfig make_split_config(const Scenario& scenario, const SoftwareProfile& software);

}  // namespace k3sim
