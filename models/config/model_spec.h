// Architecture of a decoder-only transformer as data: what a zoo file or a Hugging Face config.json says, nothing about
// how it is split or run. Every layer is its own LayerSpec, so that hybrid stacks (KDA + MLA, dense + MoE) need no
// special case. Sizes are element counts unless a name says otherwise.
// Source: k3-facts section 1 (K3 dimensions); Hugging Face config.json fields for the other families.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace k3sim {

enum class NormKind : std::uint8_t { rms_norm, layer_norm };
enum class Activation : std::uint8_t { gelu, squared_relu, swiglu, situ_glu };
enum class AttentionKind : std::uint8_t { mha, mla, kda };  // mha covers GQA and MQA through kv_heads
enum class GateKind : std::uint8_t { none, low_rank, full };

constexpr bool is_gated(Activation a) {
  return a == Activation::swiglu || a == Activation::situ_glu;
}

struct AttentionSpec {
  AttentionKind kind = AttentionKind::mha;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      // mha only; equals heads for plain multi-head attention
  std::int64_t qk_dim = 0;        // per head; mla: nope + rope
  std::int64_t v_dim = 0;         // per head
  std::int64_t q_lora_rank = 0;   // mla; 0 = direct query projection
  std::int64_t kv_lora_rank = 0;  // mla latent width
  std::int64_t rope_dim = 0;      // mla: shared extra dimensions per head (rotated or not)
  std::int64_t conv_kernel = 0;   // kda: depth-wise causal short convolution on q, k and v
  std::int64_t decay_rank = 0;    // kda: low-rank decay gate h -> rank -> heads * qk_dim
  std::int64_t gate_rank = 0;     // rank of a low-rank output gate
  std::int64_t window = 0;        // sliding window in tokens; 0 = full causal
  GateKind output_gate = GateKind::none;
  bool rotary = true;  // false: NoPE
  bool qkv_bias = false;
  bool out_bias = false;
  bool qk_norm = false;  // per-head RMSNorm on q and k (Qwen3)
};

struct FfnSpec {
  Activation activation = Activation::swiglu;
  std::int64_t intermediate = 0;  // dense FFN width; 0 in a MoE layer
  bool bias = false;
  std::int64_t experts = 0;  // 0: dense layer
  std::int64_t topk = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t latent = 0;               // LatentMoE expert input and output width; 0: hidden
  bool latent_norm = false;              // RMSNorm(latent) after combine
  std::int64_t widened_by = 1;           // full width instead of latent: experts and topk were divided by this
  std::int64_t shared_intermediate = 0;  // all shared experts fused into one full-width FFN
  bool shared_gate = false;              // sigmoid gate on the shared expert (Qwen2-MoE)
  bool selection_bias = false;           // one bias per expert, used for selection only
  std::int64_t groups = 1;               // group-limited routing: number of groups ...
  std::int64_t groups_chosen = 1;        // ... and how many of them a token may use
  bool is_moe() const { return experts > 0; }
  bool operator==(const FfnSpec&) const = default;
};

struct LayerSpec {
  AttentionSpec attention;
  FfnSpec ffn;
};

// MoonViT-type encoder in front of the language model; width 0 means none.
struct VisionSpec {
  std::int64_t hidden = 0, attention_width = 0, heads = 0, ffn = 0, layers = 0, patch = 0, positions = 0;
  bool present() const { return hidden > 0; }
};

struct ModelSpec {
  std::string name;
  std::string source;  // where the dimensions come from
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  bool learned_positions = false;  // GPT: a trained position table of max_positions rows
  bool tied_embeddings = false;
  bool norm_bias = false;  // layer_norm with bias, or (1 + w) forms count as without
  NormKind norm = NormKind::rms_norm;
  std::vector<LayerSpec> layers;
  std::int64_t attnres_block = 0;  // Block Attention Residuals: layers per block; 0 = plain residual
  std::int64_t mtp_layers =
      0;  // multi-token prediction layers trained beside the stack (each: last layer kind + 2h->h)
  VisionSpec vision;
};

}  // namespace k3sim
