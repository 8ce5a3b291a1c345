// k3sim schema: the JSON Schema of scenario.yaml, for editors.
// Source: product-spec section 3.
#include <CLI/App.hpp>
#include <ostream>

#include "models/config/field_table.h"
#include "tools/commands/command.h"

namespace k3sim {

void add_schema_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "schema", "JSON Schema of a scenario, for editors and checkers",
                                  "k3sim schema > scenario.schema.json");
  command->callback([&context] { context.out << scenario_schema(); });
}

}  // namespace k3sim
