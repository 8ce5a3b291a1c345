// k3sim model NAME|FILE: audit of parameters, FLOPs and bytes per component of a zoo model, a YAML file of that form or
// a Hugging Face config.json.
// Source: product-spec sections 2 and 7; k3-facts sections 1.3-1.5 (the tables it reproduces).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

struct ModelCommandOptions {
  std::string model;
  std::int64_t sequence = 0;  // document length of the attention FLOPs; 0: 8,192 or the model's maximum if shorter
  bool json = false;
  bool colour = false;
};

void run_model_command(const ModelCommandOptions& options, std::ostream& out);

void add_model_command(CLI::App& app, CommandContext& context);

}  // namespace k3sim
