// Megatron-LM's pipeline layout strings: "Et*2|(t*2|)*34|mL".
//   stages separated by '|'; E embedding, t decoder layer, m MTP layer, L output head; x*N and (...)*N repeat
// Source: Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace k3sim {

// Decoder layers per stage in model order; empty when the text is no layout.
std::optional<std::vector<int>> parse_pipeline_layout(const std::string& text);

// "[0,1]*2", "([0]*3+[1]*58)": Megatron-LM's --moe-layer-freq as a pattern; nullopt when it is none.
std::optional<std::vector<int>> parse_layer_pattern(const std::string& text);

}  // namespace k3sim
