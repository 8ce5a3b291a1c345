// The list of commands, in the order of `k3sim --help`. A new command is one file and one entry in registry.cpp.
// Source: product-spec section 2.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

// Declares every command on the app.
void add_all_commands(CLI::App& app, CommandContext& context);

}  // namespace k3sim
