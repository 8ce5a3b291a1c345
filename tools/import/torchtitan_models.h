// Dimensions of torchtitan's named model flavours. Source: torchtitan models/*/__init__.py.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config/model_spec.h"

namespace k3sim {

struct TorchtitanModel {
  std::string zoo;  // name in models/zoo; empty: only `model`
  ModelSpec model;
};

std::optional<TorchtitanModel> torchtitan_model(const std::string& family, const std::string& flavor);
std::vector<std::string> torchtitan_flavors(const std::string& family);

}  // namespace k3sim
