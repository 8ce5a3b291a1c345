// Programs of single modules as plain PyTorch writes them, for comparison with measured modules: no residual, no
// AttnRes, nothing fused beyond what is named (fusion 0). Names: kda, mla, latent_moe, dense, attnres_mix, llama_block,
// kda_block and mla_block (pre-norm block: x + attention(norm x), x + moe(norm x)).
// Source: measurements README ("How the modules were built").
#pragma once

#include <string>
#include <vector>

#include "models/config/model_spec.h"
#include "models/transformer/program.h"

namespace k3sim {

struct ModuleOptions {
  std::int64_t local_experts = 28;  // latent_moe and the blocks: experts on this GPU, all rows local
  std::int64_t sources = 9;         // attnres_mix: rows mixed
  bool gradient_held = false;       // the caller keeps the output's gradient alive during backward
  bool first_gradients = false;     // weight gradients do not exist before backward and stay after it
};

// Throws ConfigError for an unknown name, with a suggestion. `model` gives the sizes (kimi_k3 for the K3 modules).
LayerProgram module_program(const ModelSpec& model, const std::string& name, std::int64_t tokens,
                            const ModuleOptions& options = {});
std::int64_t module_parameters(const ModelSpec& model, const std::string& name, const ModuleOptions& options = {});
std::vector<std::string> known_modules();

// Peak bytes allocated above what was there before the step (weights, input, output gradient) for a chain of modules
// run forward, then backward, with 2-byte weight gradients:
//   max over the chain of (kept so far + workspace + gradients) - input and output gradient + the output the caller
//   holds.
// gradients: all of them, or those of the later modules when they are first made in this backward (first_gradients).
Bytes chain_peak_growth(const ModelSpec& model, const std::vector<std::string>& chain, std::int64_t tokens,
                        const ModuleOptions& options = {});

}  // namespace k3sim
