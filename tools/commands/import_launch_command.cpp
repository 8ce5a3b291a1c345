// Source: product-spec section 2; see import_launch_command.h. Unknown arguments go to stderr and into the YAML as
// comments; --strict makes them exit code 2.
#include "tools/commands/import_launch_command.h"

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Option.hpp>

#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/import/imported_scenario.h"

namespace k3sim {
namespace {

struct Options {
  std::string file, out;
  std::vector<std::string> environment;
  ImportOptions import;
  bool strict = false, torchtitan = false;
};

std::string read_input(const std::string& file) {
  std::ostringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError("cannot read the file", {}, Place{file, 0, 0});
  text << in.rdbuf();
  return text.str();
}

std::map<std::string, std::string> environment_of(const Options& o) {
  std::map<std::string, std::string> out;
  for (const std::string& e : o.environment) {
    const std::size_t equals = e.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("--env needs NAME=VALUE, got '" + e + "'");
    out[e.substr(0, equals)] = e.substr(equals + 1);
  }
  return out;
}

ImportedScenario imported(const Options& o) {
  const std::string text = read_input(o.file);
  if (o.torchtitan || o.file.ends_with(".toml")) return import_torchtitan(text, o.file, o.import);
  LaunchArguments arguments = read_launch(text, o.file, environment_of(o));
  return import_launch(arguments, o.import);
}

int run(const Options& o, CommandContext& context) {
  const ImportedScenario result = imported(o);
  for (const std::string& note : result.notes) context.err << "note: " << note << "\n";
  for (const std::string& unknown : result.unknown) context.err << "unknown argument: " << unknown << "\n";
  if (o.strict && !result.unknown.empty())
    throw ConfigError(fmt::format("{} unknown arguments (--strict)", result.unknown.size()), {}, Place{o.file, 0, 0});
  const std::string yaml = imported_to_yaml(result);
  if (o.out.empty())
    context.out << yaml;
  else
    write_file_atomically(o.out, yaml);
  return 0;
}

CLI::App* add_one(CLI::App& import, const char* name, const char* does, const char* example, bool torchtitan,
                  CommandContext& context) {
  const auto o = std::make_shared<Options>();
  o->torchtitan = torchtitan;
  CLI::App* c = add_command(import, name, does, example);
  c->add_option("file", o->file, "file; - reads standard input")->required();
  c->add_option("--out", o->out, "write the scenario to this file instead of stdout");
  c->add_option("--gpu", o->import.gpu, "GPU profile of the cluster (default h100_sxm)");
  c->add_option("--nodes", o->import.nodes, "number of nodes, when the launch leaves it to its environment");
  c->add_option("--name", o->import.name, "name of the model");
  if (!torchtitan)
    c->add_option("--env", o->environment, "value of a variable that the script takes from outside")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false);
  c->add_flag("--strict", o->strict, "unknown arguments are an error");
  c->callback([o, &context] { context.exit_code = run(*o, context); });
  return c;
}

}  // namespace

void add_import_launch_commands(CLI::App& import, CommandContext& context) {
  add_one(import, "megatron-args",
          "scenario from a Megatron-LM or Megatron-DeepSpeed command, script or MODEL_ARGS file",
          "k3sim import megatron-args pretrain.sh --env NNODES=16 --out scenario.yaml", false, context);
  add_one(import, "torchtitan", "scenario from a torchtitan TOML file",
          "k3sim import torchtitan llama3_70b.toml --nodes 32 > scenario.yaml", true, context);
  add_one(import, "recipe", "scenario from a NeMo or Megatron-Bridge YAML recipe",
          "k3sim import recipe llama3_1_70b.yaml > scenario.yaml", false, context);
}

}  // namespace k3sim
