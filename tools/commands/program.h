// The whole program behind main(): declares the commands, parses, runs the chosen one and turns every error into its
// message on stderr and its exit code: 0 fine, 1 the answer is "no", 2 wrong usage or input, 3 an internal check
// failed. Source: product-spec section 2.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

// `arguments` without the program's name.
int run_program(const std::vector<std::string>& arguments, CommandContext& context);

}  // namespace k3sim
