// Contradictions between settings and settings that would have no effect, each with the numbers. Sections in which a
// value is already wrong are left out, so that one slip does not become ten messages.
// Source: product-spec section 3; the divisibility rules are Megatron-LM's (megatron/training/arguments.py and
// core/parallel_state.py).
#pragma once

#include "models/config/scenario.h"
#include "models/config/yaml_reader.h"

namespace k3sim {

// `model_known`: the model was found, so that rules about heads, layers and experts can be checked.
void check_scenario(const Scenario& scenario, const YamlDocument& document, bool model_known);

}  // namespace k3sim
