// k3sim validate --kind kernel: single kernels against published tables and measurement files.
// Source: product-spec sections 2 and 7.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

// YAML files are read as published tables, CSV files as measurements; none: the shipped ones. Returns the exit code.
// `folder` empty: no files.
int run_validate_kernel(const std::vector<std::string>& files, const std::string& folder, CommandContext& context);

}  // namespace k3sim
