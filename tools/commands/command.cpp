// Source: product-spec section 2; CLI11 2.1 (App::footer, Option::allow_extra_args).
#include "tools/commands/command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace k3sim {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& does, const std::string& example) {
  CLI::App* command = app.add_subcommand(name, does);
  command->footer("\nExample:\n  " + example);
  return command;
}

void add_json_flag(CLI::App& command, CommandContext& context) {
  command.add_flag("--json", context.json, "machine-readable output on stdout and nothing else there");
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command.add_option("--set", overrides, "override one key, for example --set parallel.tp=8 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace k3sim
