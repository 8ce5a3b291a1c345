// What every command gets and how it is registered. A command is one file with
//     void add_NAME_command(CLI::App& app, CommandContext& context);
// that declares its options and sets a callback; the callback stores its exit code in context.exit_code
// (0 fine, 1 the answer is "no") and throws ConfigError or UsageError for wrong input (run_program turns them into 2).
// Results go to context.out and messages to context.err; files are written through output_files.h only.
// Source: product-spec section 2 (commands, exit codes, stdout and stderr).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext {
  std::ostream& out;  // results
  std::ostream& err;  // messages and progress
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool json = false;  // set by add_json_flag: machine-readable output and nothing else on `out`
  int exit_code = 0;
  std::string command = "";  // as typed, for reports (report_files.h)
  bool colour() const { return out_is_terminal && !json; }
};

// Creates a subcommand whose --help ends with the example, for instance "k3sim schema > scenario.schema.json".
// Also for subcommands of a command: add_command(*schedule, "lint", ...).
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& does, const std::string& example);

// --json, which sets context.json.
void add_json_flag(CLI::App& command, CommandContext& context);

// --set key=value, any number of times; pass the list to the scenario loader.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

}  // namespace k3sim
