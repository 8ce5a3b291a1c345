// k3sim import: the group of commands that turn what people have into our YAML.
// Source: product-spec section 2. A further format is one more add_import_... line.
#include <CLI/App.hpp>

#include "tools/commands/command.h"
#include "tools/commands/import_hf_command.h"
#include "tools/commands/import_launch_command.h"

namespace k3sim {

void add_import_command(CLI::App& app, CommandContext& context) {
  CLI::App* import = add_command(app, "import", "turn other programs' files into our YAML",
                                 "k3sim import hf-config config.json > my_model.yaml");
  import->require_subcommand(1);
  add_import_hf_command(*import, context);
  add_import_launch_commands(*import, context);
}

}  // namespace k3sim
