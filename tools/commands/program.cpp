// Source: product-spec section 2 (exit codes, errors with did-you-mean); CLI11 2.1 (App::remaining after a ParseError).
#include "tools/commands/program.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <exception>
#include <ostream>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"
#include "tools/commands/command.h"
#include "tools/commands/registry.h"
#include "tools/commands/report_files.h"

namespace k3sim {
namespace {

constexpr int kWrongInput = 2;
constexpr int kInternalError = 3;

// The deepest subcommand that the command line reached.
const CLI::App& reached(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() ? full_name(*command.get_parent()) + " " + command.get_name() : command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string with_hint(const std::string& what, const std::string& hint) {
  return hint.empty() ? what : fmt::format("{} ({})", what, hint);
}

// CLI11 says only that something was not expected; say what it probably should have been.
std::string explain(const CLI::App& command, const CLI::ParseError& error) {
  for (const std::string& word : command.remaining()) {
    if (word == "--") continue;
    if (word.starts_with("-"))
      return with_hint(fmt::format("unknown option '{}'", word),
                       did_you_mean(word.substr(0, word.find('=')), option_names(command)));
    const std::vector<std::string> commands = command_names(command);
    if (!commands.empty()) return with_hint(fmt::format("unknown command '{}'", word), did_you_mean(word, commands));
    return fmt::format("unexpected argument '{}'", word);
  }
  const std::vector<std::string> commands = command_names(command);
  if (!commands.empty() && command.get_subcommands().empty())
    return fmt::format("needs a command: {}", fmt::join(commands, ", "));
  return error.what();
}

int usage_problem(const CLI::App& command, const std::string& what, CommandContext& context) {
  context.err << "error: " << what << "\nsee " << full_name(command) << " --help\n";
  return kWrongInput;
}

int parse_and_run(CLI::App& app, const std::vector<std::string>& arguments, CommandContext& context) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
    context.out.flush();
    if (context.out.fail()) throw ConfigError("cannot write to standard output");
    return context.exit_code;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e, context.out, context.err);  // --help, --version
    return usage_problem(reached(app), explain(reached(app), e), context);
  } catch (const UsageError& e) {
    return usage_problem(reached(app), e.what(), context);
  } catch (const ConfigError& e) {
    context.err << e.what() << "\n";
    return kWrongInput;
  }
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, CommandContext& context) {
  try {
    CLI::App app("Predicts training steps of large language models on GPU clusters.", "k3sim");
    app.set_version_flag("--version", "k3sim " K3SIM_VERSION);
    app.footer(
        "\nk3sim COMMAND --help explains a command and shows an example.\n"
        "Exit codes: 0 fine, 1 the answer is no, 2 wrong usage or input, 3 internal error.");
    app.require_subcommand(1);
    context.command = command_line(arguments);
    add_all_commands(app, context);
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) command->fallthrough(false);
    return parse_and_run(app, arguments, context);
  } catch (const std::exception& e) {
    context.err << "internal error: " << e.what() << "\nThis is a bug in k3sim; please report it with the command.\n";
    return kInternalError;
  }
}

}  // namespace k3sim
