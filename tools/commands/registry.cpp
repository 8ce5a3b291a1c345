// The array of commands. To add one: declare its function, add it to the array.
// Source: product-spec section 2.
#include "tools/commands/registry.h"

#include "tools/commands/command.h"

namespace k3sim {

void add_run_command(CLI::App& app, CommandContext& context);
void add_report_command(CLI::App& app, CommandContext& context);
void add_validate_command(CLI::App& app, CommandContext& context);
void add_schema_command(CLI::App& app, CommandContext& context);
void add_model_command(CLI::App& app, CommandContext& context);
void add_import_command(CLI::App& app, CommandContext& context);
void add_collective_command(CLI::App& app, CommandContext& context);
void add_topology_command(CLI::App& app, CommandContext& context);
void add_moonep_command(CLI::App& app, CommandContext& context);
void add_balancing_command(CLI::App& app, CommandContext& context);
void add_schedule_command(CLI::App& app, CommandContext& context);
void add_regress_command(CLI::App& app, CommandContext& context);
void add_chakra_command(CLI::App& app, CommandContext& context);
void add_compare_command(CLI::App& app, CommandContext& context);
void add_calibrate_command(CLI::App& app, CommandContext& context);
void add_fit_command(CLI::App& app, CommandContext& context);
void add_kernels_command(CLI::App& app, CommandContext& context);
void add_sweep_command(CLI::App& app, CommandContext& context);
void add_plan_command(CLI::App& app, CommandContext& context);
void add_diff_command(CLI::App& app, CommandContext& context);
void add_ablate_command(CLI::App& app, CommandContext& context);
void add_capacity_command(CLI::App& app, CommandContext& context);

void add_all_commands(CLI::App& app, CommandContext& context) {
  using AddCommand = void (*)(CLI::App&, CommandContext&);
  constexpr AddCommand kCommands[] = {
      add_run_command,      add_report_command,     add_validate_command, add_schema_command,    add_model_command,
      add_import_command,   add_collective_command, add_topology_command, add_moonep_command,    add_balancing_command,
      add_schedule_command, add_regress_command,    add_compare_command,  add_calibrate_command, add_fit_command,
      add_kernels_command,  add_sweep_command,      add_plan_command,     add_diff_command,      add_ablate_command,
      add_capacity_command, add_chakra_command,
  };
  for (const AddCommand add : kCommands) add(app, context);
}

}  // namespace k3sim
