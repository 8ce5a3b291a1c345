// Reads a scenario: file, overrides, model, every field of the table, then the checks of scenario_check.h.
// Throws one ConfigError with every problem found. Paths inside the file (model, schedule.file, moe.routing.file) are
// relative to the file's folder when something is there, else to the current folder.
// Source: product-spec section 3.
#pragma once

#include <string>
#include <vector>

#include "models/config/scenario.h"

namespace k3sim {

class YamlDocument;

// `path` is a YAML file, a folder with a scenario.yaml, or the name of a shipped scenario ("k3_2048_h800").
// `overrides` are "key.path=value" as given to --set.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides = {});

// The file that load_scenario would read.
std::string find_scenario_file(const std::string& path);

// The same from an open document, for callers that change it first (search spaces). Consumes the document's problems.
Scenario read_scenario(YamlDocument& document);

}  // namespace k3sim
