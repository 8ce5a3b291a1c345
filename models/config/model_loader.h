// Reads a model from models/zoo/NAME.yaml, from a YAML file of the same form, or from a Hugging Face config.json, and
// writes that YAML form (what `k3sim import hf-config` prints).
//
//   name, source, hidden, vocab, max_positions, learned_positions, tied_embeddings, norm, norm_bias, attnres_block,
//   mtp_layers; attention: {LABEL: {kind, heads, ...}}; ffn: {LABEL: {activation, ...}};
//   layers: {count, attention: LABEL, ffn: LABEL, exceptions: [{layers: [1-based numbers], attention, ffn}]}; vision
// Source: product-spec sections 2 and 3; field meanings in model_spec.h.
#pragma once

#include <string>
#include <vector>

#include "models/config/model_spec.h"

namespace k3sim {

class YamlNode;

// Name of a zoo model or a path (anything with '/' or a .yaml, .yml or .json suffix). Throws ConfigError with all
// problems of the file, or with a suggestion for an unknown name.
ModelSpec load_model(const std::string& name_or_path);
ModelSpec parse_model(const std::string& yaml, const std::string& file_name);
// The same form inside another file (`model:` of a scenario). Problems stay in the document; model_problems is not
// asked.
ModelSpec read_model_section(const YamlNode& root);
std::vector<std::string> known_models();
std::string model_to_yaml(const ModelSpec& model);

// Inconsistencies of a specification, in words; empty when it is sound.
std::vector<std::string> model_problems(const ModelSpec& model);

}  // namespace k3sim
