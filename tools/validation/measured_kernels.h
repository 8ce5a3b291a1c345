// Measurements from either form of file: a CSV as calibrate writes it, or published tables in YAML, of which the rows
// of one GPU are taken. Source: product-spec sections 5 and 6.
#pragma once

#include <string>

#include "calibrate/harness/measurement_file.h"

namespace k3sim {

// `gpu`: profile name, needed for published tables only. a100_sxm and a100_sxm_80 are the same GPU.
MeasurementTable read_measured_kernels(const std::string& file, const std::string& gpu);

}  // namespace k3sim
