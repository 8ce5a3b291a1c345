// From the scenario's activation section to the modules that are recomputed.
//
//   none, keep_all  everything stays (Megatron default with flash attention)
//   selective  core attention: scores, softmax and dropout of non-flash attention (Korthikanti et al. 2022)
//   per_operator  attention outputs and every second matrix product are kept, the rest of the layer is rebuilt at once
//              (torchtitan's selective checkpointing; in time only norms and activations count as rebuilt)
//   full, full_recompute  only the input of every layer is kept
//   unified, k3_unified  K3: norms, activations, AttnRes mixes, dispatch and MLA up-projections are rebuilt, the rest
//   is
//              stored as FP8 in host memory (k3-facts 2.4)
//   k2         norms, activations, MLA up-projections, expert down inputs (K2 report, k3-facts 2.11)
//   auto       chosen per pipeline rank to fit its memory at the least added time (stage_policies.h)
// `tensors` holds rules by tensor name, over the preset (models/memory/storage_rules.h).
// `recompute` adds modules by name; unknown names are errors with a suggestion.
// Source: k3-facts 2.4, 2.11; Korthikanti et al. 2022.
#pragma once

#include <string>
#include <vector>

#include "models/build/layer_timing.h"
#include "models/config/scenario.h"

namespace k3sim {

const std::vector<std::string>& activation_policy_names();
RecomputePolicy make_recompute_policy(const ActivationConfig& config, const ModelSpec& model);

}  // namespace k3sim
