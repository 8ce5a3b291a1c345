// Names of modules as policies, traces and tables print them.
// Source: Megatron-LM --recompute-modules (names), extended by the K3 modules of k3-facts section 1.2.
#include "models/transformer/program.h"

namespace k3sim {

const char* to_string(Module m) {
  static constexpr const char* kNames[kModules] = {"norm",
                                                   "qkv_proj",
                                                   "mla_up_proj",
                                                   "conv",
                                                   "gate",
                                                   "core_attention",
                                                   "attn_out",
                                                   "ffn_up",
                                                   "activation",
                                                   "ffn_down",
                                                   "router",
                                                   "latent_proj",
                                                   "dispatch",
                                                   "expert_up",
                                                   "expert_activation",
                                                   "expert_down",
                                                   "combine",
                                                   "shared_up",
                                                   "shared_activation",
                                                   "shared_down",
                                                   "attnres",
                                                   "embedding",
                                                   "head",
                                                   "residual"};
  return kNames[static_cast<std::size_t>(m)];
}

}  // namespace k3sim
