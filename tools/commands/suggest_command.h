// `calibrate --suggest SCENARIO`: prints the measurements that would narrow the step's error bar most.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

int suggest_measurements(const std::string& path, const std::vector<std::string>& overrides, CommandContext& context);

}  // namespace k3sim
