// A published case as a Scenario, or the reason why it cannot be predicted. Nothing is guessed silently: every
// assumption made for a missing setting is listed. The same rules apply to every case of a source; none names a case.
// Source: validation README; product-spec section 6 ("skipped with the reason, never guessed silently").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config/scenario.h"
#include "tools/validation/case_file.h"

namespace k3sim {

struct CaseScenario {
  std::optional<Scenario> scenario;
  std::string reason;  // why there is none
  std::vector<std::string> assumptions;
};

CaseScenario case_scenario(const Case& c);

// Pieces, one file each.
ModelSpec case_model(const Case& c);
std::string gpu_profile_name(const std::string& printed);  // "" when there is no profile
std::string software_profile_name(const Case& c);
// Layers per stage as nanotron cuts them; embedding first, head last.
std::vector<int> nanotron_stage_layers(const CaseModel& model, int stages);
// Payload per GPU and direction from texts such as "8x400Gb/s NDR InfiniBand per node"; nullopt: single node, unknown.
std::optional<Bandwidth> network_per_gpu(const Case& c);

}  // namespace k3sim
