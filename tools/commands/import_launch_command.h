// k3sim import megatron-args | torchtitan | recipe: launches of other frameworks as our scenarios.
// Source: product-spec section 2; issue 11.
#pragma once

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

// Adds the three commands to the `import` group.
void add_import_launch_commands(CLI::App& import, CommandContext& context);

}  // namespace k3sim
