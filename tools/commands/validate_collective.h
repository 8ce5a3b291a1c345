// k3sim validate --kind collective: errors of collectives, messages and expert exchanges.
// Source: product-spec sections 2 and 7.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

// YAML files are read as validation tables, CSV files as measurements; none: the shipped ones. Returns the exit code.
// `folder` empty: no files.
int run_validate_collective(const std::vector<std::string>& files, const std::string& folder, CommandContext& context);

}  // namespace k3sim
