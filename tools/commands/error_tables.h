// The error analysis of `k3sim validate` as tables of its page: features against residuals, largest errors dissected.
// Source: tools/validation/error_features.h.
#pragma once

#include <vector>

#include "tools/report/html_page.h"
#include "tools/validation/error_features.h"

namespace k3sim {

PageTable feature_table(const std::vector<FeatureLevel>& levels);
PageTable largest_error_table(const std::vector<LargeError>& errors);
PageTable largest_error_parts(const std::vector<LargeError>& errors);

}  // namespace k3sim
