// Where the program's data lives: the folder that holds models/zoo, hardware_profiles and scenarios.
// Order: the environment variable K3SIM_HOME, the folders above the running binary, the source tree it was built from.
// Source: product-spec section 2 (commands work from any folder).
#pragma once

#include <string>
#include <vector>

namespace k3sim {

std::string data_root();

// data_root() + "/" + relative, for example data_path("models/zoo/kimi_k3.yaml").
std::string data_path(const std::string& relative);

// Names of the *.yaml files of a data folder without the suffix, sorted: known_names("hardware_profiles/gpu").
std::vector<std::string> known_names(const std::string& folder);

}  // namespace k3sim
