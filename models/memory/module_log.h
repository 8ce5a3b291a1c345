// Request log of a chain of modules run forward and backward as plain PyTorch code: what the measured modules and
// stacks asked of the allocator. Weights, the input and the gradient of the output are there beforehand; weight
// gradients are made in the first pass and added to later. Several passes, because reserved bytes settle only after the
// first. Source: measurements README ("How the modules were built").
#pragma once

#include <string>
#include <vector>

#include "models/transformer/modules.h"
#include "sim/mem/request_log.h"

namespace k3sim {

struct ModuleChain {
  std::vector<std::string> modules;
  std::int64_t tokens = 0;
  ModuleOptions options = {};
  Bytes base{0};  // allocated before the step, weights included
  int passes = 3;
};

RequestLog module_log(const ModelSpec& model, const ModuleChain& chain);

}  // namespace k3sim
