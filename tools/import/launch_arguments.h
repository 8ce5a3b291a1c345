// Arguments of a training launch under the names that Megatron-LM's command line uses ("tensor-model-parallel-size"),
// whatever file they came from: a shell script or command line, a MODEL_ARGS YAML of Megatron's tests and model zoo, a
// NeMo or Megatron-Bridge recipe. Every argument remembers its line and whether anybody asked for it, so that none is
// dropped silently.
// Source: Megatron-LM megatron/training/arguments.py; NeMo launcher conf/training; Megatron-Bridge ConfigContainer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace k3sim {

struct LaunchArgument {
  std::string name;  // '-' for '_', no leading dashes
  std::vector<std::string> values;
  int line = 0;
  std::vector<std::string> unknown;  // shell variables without a value
  bool used = false;
};

class LaunchArguments {
 public:
  using Names = std::initializer_list<const char*>;

  void add(LaunchArgument argument);  // the last one of a name counts
  // First of the names that is there; null-like values ("null", "None", "") count as absent. Throws ConfigError when
  // the value depends on a shell variable that is unknown.
  const LaunchArgument* find(Names names);
  std::optional<std::string> text(Names names);
  std::optional<std::int64_t> integer(Names names);  // throws ConfigError for anything else
  std::int64_t integer(Names names, std::int64_t fallback) { return integer(names).value_or(fallback); }
  std::optional<double> number(Names names);
  bool flag(Names names);  // "--flag", "--flag true"; "false" and "0" are off
  bool has(Names names) { return find(names) != nullptr; }
  const std::vector<LaunchArgument>& all() const { return arguments_; }

  std::string file;
  std::string origin = "megatron";  // megatron | deepspeed | nemo | bridge
  std::optional<std::int64_t> nodes, gpus_per_node;

 private:
  std::vector<LaunchArgument> arguments_;
};

// Recognises the form by its content. `environment` gives values that the script takes from outside.
LaunchArguments read_launch(const std::string& text, const std::string& file,
                            const std::map<std::string, std::string>& environment);

// Is the argument known to change neither time nor memory (learning rates, paths, logging)?
bool is_irrelevant_argument(const std::string& name);

}  // namespace k3sim
