// Hugging Face config.json -> ModelSpec for llama, mixtral, qwen3, qwen3_moe, deepseek_v3, kimi_k2, kimi_linear and
// kimi_k3 kinds (multimodal files keep the language model under text_config). Keys that do not change sizes are
// ignored; a missing size, a wrong type or an unknown model_type is a ConfigError that names the key. Source: the
// config classes of huggingface/transformers (llama, mixtral, qwen3, qwen3_moe, deepseek_v3, kimi_linear) and the K3
// configuration as transcribed in k3-facts section 1.2.
#pragma once

#include <string>
#include <vector>

#include "models/config/model_spec.h"

namespace k3sim {

ModelSpec load_hf_config(const std::string& path);
ModelSpec parse_hf_config(const std::string& json, const std::string& file_name);
std::vector<std::string> known_hf_model_types();

}  // namespace k3sim
