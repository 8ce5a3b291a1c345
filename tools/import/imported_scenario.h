// What an importer makes of somebody's launch: a scenario, the YAML of it, and an account of every argument.
// Source: product-spec sections 2 and 3; issue 11 (unknown arguments are listed, never dropped silently).
#pragma once

#include <string>
#include <vector>

#include "models/config/scenario.h"
#include "tools/import/launch_arguments.h"

namespace k3sim {

struct ImportOptions {
  std::string gpu = "h100_sxm";
  int nodes = 0;     // 0: as the launch says, or the smallest cluster that the layout fits
  std::string name;  // of the model; empty: "imported"
};

struct ImportedScenario {
  Scenario scenario;                    // model and fields; dp stays automatic
  std::string zoo_model;                // a name instead of the model itself
  std::vector<std::string> notes;       // what was assumed or approximated
  std::vector<std::string> unknown;     // "--name value (line N)"
  std::vector<std::string> irrelevant;  // names
};

ImportedScenario import_launch(LaunchArguments& arguments, const ImportOptions& options);
ImportedScenario import_torchtitan(const std::string& toml, const std::string& file, const ImportOptions& options);

// The scenario with the model inside it; notes and unknown arguments are comments.
std::string imported_to_yaml(const ImportedScenario& imported);

// Model part of import_launch, exposed for tests.
ModelSpec model_of_launch(LaunchArguments& arguments, std::vector<std::string>& notes);

// Nodes of eight GPUs (or fewer GPUs on one) for this layout when nothing says how many; dp as small as the expert
// group and the batch allow.
void choose_cluster(ImportedScenario& imported, const ImportOptions& options, std::optional<std::int64_t> nodes,
                    std::optional<std::int64_t> gpus_per_node);

}  // namespace k3sim
