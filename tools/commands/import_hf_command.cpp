// See import_hf_command.h. Source: models/config/hf_config.h (what is read), model_loader.h (what is written).
#include "tools/commands/import_hf_command.h"

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "models/config/hf_config.h"
#include "models/config/model_loader.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"

namespace k3sim {

void add_import_hf_command(CLI::App& import, CommandContext& context) {
  struct Options {
    std::string file, name, out;
  };
  CLI::App* command = add_command(import, "hf-config", "model YAML from a Hugging Face config.json",
                                  "k3sim import hf-config config.json --name my_model > my_model.yaml");
  const auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "config.json")->required();
  command->add_option("--name", options->name, "name of the model (default: the file's)");
  command->add_option("--out", options->out, "write to this file instead of stdout");
  command->callback([options, &context] {
    ModelSpec model = load_hf_config(options->file);
    if (!options->name.empty()) model.name = options->name;
    const std::string yaml = model_to_yaml(model);
    if (options->out.empty())
      context.out << yaml;
    else
      write_file_atomically(options->out, yaml);
  });
}

}  // namespace k3sim
