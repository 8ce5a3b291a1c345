// Scenario -> Machine: GPU profile, collectives of its kind, fabric and software constants from hardware_profiles/.
// Source: product-spec section 3 (cluster, software).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/config/scenario.h"

namespace k3sim {

// Throws ConfigError with a suggestion for an unknown profile.
Machine load_machine(const Scenario& scenario);

// Keeps loaded profiles, for commands that predict many scenarios. Not thread-safe; load before sharing.
class MachineCache {
 public:
  const Machine& get(const Scenario& scenario);

 private:
  std::vector<std::pair<std::string, std::unique_ptr<Machine>>> machines_;
};

}  // namespace k3sim
