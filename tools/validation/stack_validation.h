// validate --kind stack: measured PyTorch modules of K3 (h200_k3_modules.csv) against composed kernels; time of forward
// and backward, and peak memory. Nothing is fitted to these rows. Source: measurements README; product-spec 7.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

// Throws ConfigError for a file that is not of this form.
std::vector<ValidationRow> validate_stack(const std::string& csv_path);

}  // namespace k3sim
