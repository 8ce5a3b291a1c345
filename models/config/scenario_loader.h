// Reads a scenario: file, overrides, model, every field of the table, then the checks of scenario_check.h.
// Throws one ConfigError with every problem found. Paths inside the file (model, schedule.file, moe.routing.file) are
// relative to the file's folder when something is there, else to the current folder.
// Source: product-spec section 3.
#pragma once

#include <string>
#include <vector>

#include "models/config/scenario.h"
#include "sim/base/error.h"

namespace k3sim {

class YamlDocument;

// `path` is a YAML file, a folder with a scenario.yaml, or the name of a shipped scenario ("k3_2048_h800").
// `overrides` are "key.path=value" as given to --set.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides = {});

// The file that load_scenario would read.
std::string find_scenario_file(const std::string& path);

// Errors found after loading know their key but not its line: the same problems with the places of that scenario's
// file.
ConfigError with_places(const ConfigError& error, const std::string& path, const std::vector<std::string>& overrides);

// As load_scenario from an open document, for callers that change it first (search spaces). Consumes the document's
// problems.
Scenario read_scenario(YamlDocument& document);

// Only the reading: every field, without the checks that need all of them. Problems stay in the document.
struct FieldsRead {
  Scenario scenario;
  bool model_known = false;
};
FieldsRead read_scenario_fields(YamlDocument& document);

}  // namespace k3sim
