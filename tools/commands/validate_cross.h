// k3sim validate --cross-validate: constants of software stacks fitted without the cases they are scored on.
// Source: product-spec section 2; issue of the accuracy promise.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/command.h"
#include "tools/validation/case_file.h"

namespace k3sim {

int run_cross_validation(const std::vector<Case>& cases, int threads, const std::string& folder,
                         CommandContext& context);

}  // namespace k3sim
