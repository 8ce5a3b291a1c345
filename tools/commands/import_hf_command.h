// k3sim import hf-config FILE: a Hugging Face config.json as our model YAML, on stdout or in a file.
// Source: product-spec section 2.
#pragma once

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

// Adds "hf-config" to the `import` command.
void add_import_hf_command(CLI::App& import, CommandContext& context);

}  // namespace k3sim
