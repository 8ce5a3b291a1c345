// Building blocks that the layer files share: context of one layer on one rank, linear layers with their three GEMMs
// and FP8 quantisation, tensor-parallel region borders, norms, element-wise kernels, residual adds.
//
// Tensor parallelism (Megatron): a region opens with an all-gather of the sequence shards (sequence parallelism) or for
// free (backward all-reduce), and closes with a reduce-scatter or an all-reduce. Replicated small projections (MLA and
// KDA down projections, router, latent) run on the sequence shard.
// Source: Megatron-LM core/tensor_parallel/layers.py; arXiv:2205.05198 section 4; hardware notes section 5.4 (bytes).
#pragma once

#include "models/config/model_spec.h"
#include "models/transformer/layer_graph.h"

namespace k3sim {

struct LayerContext {
  const ModelSpec& model;
  const SplitConfig& split;
  LayerGraph& graph;
  bool accumulate = true;  // eager stacks: new weight gradients are added to existing ones by a kernel of their own
  std::int64_t tokens() const { return split.tokens; }
  std::int64_t shard_tokens() const { return split.sequence_parallel ? split.tokens / split.tp : split.tokens; }
  bool eager() const { return split.fusion == 0; }
};

inline std::int64_t per_rank(std::int64_t n, int ways) {
  return (n + ways - 1) / ways;
}
inline Bytes tensor_bytes(std::int64_t rows, std::int64_t width, std::int64_t element = 2) {
  return Bytes(rows * width * element);
}

// Bytes per element of one element-wise kernel chain, forward and backward, over `elements`.
struct Pointwise {
  const char* name = "";
  Module module = Module::norm;
  MemoryClass cls = MemoryClass::activation;
  std::vector<Node> inputs;
  Bytes output{0};
  std::int64_t elements = 0;
  double forward = 0, backward = 0;
  int forward_launches = 1, backward_launches = 1;
  Lane lane = Lane::compute;
  bool view = false;     // no kernel and no memory of its own (Operation::view)
  bool product = false;  // PyTorch's product of two tensors: the second factor's gradient is made first
};
Node pointwise(LayerContext& ctx, const Pointwise& p);

// A streaming kernel of that many bytes, and an operation made of such.
Step memory_step(const char* name, Pass pass, MemoryClass cls, double bytes, int launches = 1);
Operation memory_operation(Module module, const std::vector<Node>& inputs, Bytes output);
// The [tokens, topk] weights in FP32 (ffn_router.cpp).
Node moe_router(LayerContext& ctx, const FfnSpec& f, Node normed, std::int64_t tokens);

struct Linear {
  const char* name = "";
  const char* kept = "";  // name of the input when it is kept for the weight gradient
  Module module = Module::qkv_proj;
  Node input = 0;
  Node kept_input = -1;  // the tensor kept for the weight gradient when it is not `input`
  std::int64_t m = 0, n = 0, k = 0;
  bool quantize_input = true;  // FP8 only: first reader of this input
  bool fp8_input = false;      // FP8 only: the input and ...
  bool fp8_gradient = false;   // ... the output gradient come in FP8; the weight gradient still needs them transposed
  bool regather = false;       // sequence parallelism: all-gather the kept shard again for the weight gradient
  bool gathered_gradient = false;  // sequence parallelism: the output gradient is gathered over tp
  bool bias = false;
  bool high_precision = false;  // stays in bf16 whatever the linear dtype
  std::int64_t groups = 0;      // > 0: grouped GEMM over that many experts, m rows in all
  bool choose_tile = false;     // grouped: launch parameters picked from the group sizes
  Lane lane = Lane::compute;
  Node run_after = -1;  // forward order without a data edge
};
Node linear(LayerContext& ctx, const Linear& l);

// Borders of a tensor-parallel region over rows of `width` values; both return `x` itself without tensor parallelism.
Node tp_enter(LayerContext& ctx, Node x, std::int64_t width, Module module);
Node tp_exit(LayerContext& ctx, Node x, std::int64_t width, Module module);

// The projection that ends a block: all tokens back to the hidden width, then the end of the tensor-parallel region.
Node closing_projection(LayerContext& ctx, Linear l);

struct Norm {
  const char* name = "norm";
  const char* kept = "norm.input";
  Module module = Module::norm;
  Node input = 0;
  std::int64_t rows = 0, width = 0;
  bool after_residual = false;  // may be fused into the preceding residual add (fusion level 2)
  Bytes rebuild{0};             // > 0: the input is not kept; backward mixes it again, moving that many bytes
};
Node norm(LayerContext& ctx, const Norm& n);

// residual + branch, with hidden dropout where the stack has it.
Node residual_add(LayerContext& ctx, Node residual, Node branch, const char* mask_name);

// One-way communication pairs of a data-flow edge, forward and backward, producing `output`.
struct Exchange {
  const char* forward_name = "";
  const char* backward_name = "";
  Lane lane = Lane::tp_comm;
  Module module = Module::dispatch;
  Node input = 0;
  Bytes output{0};
  CommOp forward, backward;
};
Node exchange(LayerContext& ctx, const Exchange& e);

// Attention blocks read the normed shard and return the output projection's result (before the residual).
Node mha_block(LayerContext& ctx, const AttentionSpec& a, Node normed);
Node mla_block(LayerContext& ctx, const AttentionSpec& a, Node normed);
Node kda_block(LayerContext& ctx, const AttentionSpec& a, Node normed);
Node attention_block(LayerContext& ctx, const AttentionSpec& a, Node normed);
Node softmax_core(LayerContext& ctx, const AttentionSpec& a, const std::vector<Node>& qkv, std::int64_t kv_tokens);
// Output gate (if any), output projection, region exit. `core` has heads/tp * v_dim columns, `entered` the full rows.
struct AttentionOutput {
  const AttentionSpec& attention;
  Node core = 0, normed = 0, entered = 0;
};
Node attention_output(LayerContext& ctx, const AttentionOutput& o);

// Feed-forward blocks read the normed shard and return what is added to the residual.
Node dense_ffn_block(LayerContext& ctx, const FfnSpec& f, Node normed);
Node moe_block(LayerContext& ctx, const FfnSpec& f, Node normed);
// LatentMoE without router, weights or shared experts: every token's rows are copied, exchanged with NCCL all-to-all
// over the expert-parallel group, computed, exchanged back and summed (the measured two-GPU module).
Node exchanged_experts_block(LayerContext& ctx, const FfnSpec& f, Node x);
struct ActivationCall {
  Activation kind = Activation::swiglu;
  const char* kept = "";
  Module module = Module::activation;
  Node input = 0;
  std::int64_t rows = 0, width = 0;  // of the output
  Lane lane = Lane::compute;
  Node weights = -1;  // routing weights multiplied in
  Node up = -1;       // gated: the up half when it is a tensor of its own (`input` is then the gate)
};
Node activation(LayerContext& ctx, const ActivationCall& call);

// Whole decoder layer; AttnRes bank rows are accounted by `index`.
Node decoder_layer(LayerContext& ctx, const LayerSpec& layer, std::size_t index, Node input);
Node attnres_mix(LayerContext& ctx, Node running, std::int64_t sources, const char* kept);

}  // namespace k3sim
