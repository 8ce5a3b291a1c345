// Kimi delta attention: q, k, v projections with depth-wise causal short convolutions (SiLU inside), low-rank decay
// gate, beta, the chunked gated-delta-rule core (FLA chunk_kda: gate, l2 norm and sigmoid inside), head-wise norm,
// output gate.
//
// Kept per token and head by the core (default recompute, d = 128): q and k normalised 512 B, inverse norms 8, v 256,
// raw gate 256, beta 4, Aqk and Akk 256; in all 1,292 B. Backward scratch: dq, dk, dg twice in FP32, cumulative gate,
// w, u, decayed q and k, v_new, h and dh, two FP32 dA, dv = 52 d B (6,656).
// Context parallelism (KCP): conv tails of 3 tokens, a pre-pass that reduces the slice to (state, transition), one FP32
// all-gather of heads x d x 2d values per rank (12.58 MB for K3), a merge; the same again in backward.
// Source: k3-facts sections 1.2, 2.6, 4.1, 4.2, 4.7; FLA fla/ops/kda, fla/ops/cp.
#include <algorithm>

#include "models/transformer/parts.h"

namespace k3sim {
namespace {

constexpr std::int64_t kChunk = 64;
constexpr std::int64_t kBackwardScratchPerDim = 52;  // bytes per token, head and head dimension
constexpr std::int64_t kForwardScratchPerDim = 18;   // w, u, decayed q and k, v_new (10), h (4), cumulative gate (4)

// Extra FLOPs of the pre-pass per token and head: state 4 d^2, transition 2 d^2 + 2 d^3 / C.
Kernel prepass_kernel(const char* name, Pass pass, std::int64_t tokens, std::int64_t heads, std::int64_t d) {
  Kernel k = kda_kernel(name, pass, 1, tokens, heads, d);
  const double dim = static_cast<double>(d), chunk = static_cast<double>(kChunk);
  k.flops = Flops(static_cast<double>(tokens * heads) * (6 * dim * dim + 2 * dim * dim * dim / chunk));
  k.bytes = Bytes(tokens * heads * d * 2 * 3);
  return k;
}

std::vector<Step> state_exchange(const LayerContext& ctx, Pass pass, std::int64_t heads, std::int64_t d) {
  const bool forward = pass == Pass::forward;
  CommOp gather;
  gather.kind = CommKind::all_gather;
  gather.group = GroupKind::cp;
  gather.bytes = Bytes(ctx.split.cp * heads * d * 2 * d * 4);
  const Bytes merge_traffic = gather.bytes + Bytes(heads * d * d * 4);
  return {
      compute_step(prepass_kernel(forward ? "kcp_prepass" : "kcp_prepass_grad", pass, ctx.tokens(), heads, d)),
      comm_step(forward ? "kcp_state_gather" : "kcp_state_grad_gather", Lane::cp_comm, gather),
      compute_step(memory_kernel(forward ? "kcp_merge" : "kcp_merge_grad", pass, MemoryClass::copy, merge_traffic))};
}

// Depth-wise causal convolution with SiLU of one of q, k, v.
Node short_conv(LayerContext& ctx, const char* name, const char* kept, const AttentionSpec& a, Node input,
                std::int64_t width) {
  const std::int64_t elements = ctx.tokens() * width;
  Operation op;
  op.module = Module::conv;
  op.inputs = {input};
  op.output = tensor_bytes(ctx.tokens(), width);
  if (ctx.split.cp > 1) {
    CommOp tails;
    tails.kind = CommKind::all_gather;
    tails.group = GroupKind::cp;
    tails.bytes = tensor_bytes(ctx.split.cp * (a.conv_kernel - 1), width);
    op.forward = {comm_step("kcp_conv_tail", Lane::cp_comm, tails)};
    op.backward = {comm_step("kcp_conv_tail_grad", Lane::cp_comm, tails)};
  }
  op.forward.push_back(compute_step(memory_kernel(name, Pass::forward, MemoryClass::conv, Bytes(4 * elements))));
  // Reads the input (the SiLU argument is rebuilt) and the output gradient, writes the input gradient.
  op.backward.push_back(compute_step(memory_kernel(name, Pass::input_grad, MemoryClass::conv, Bytes(6 * elements))));
  const Node self = ctx.graph.add(std::move(op));
  ctx.graph.keep(input, self, kept);
  return self;
}

struct CoreInputs {
  Node q, k, v, decay, beta;
};

Node chunked_core(LayerContext& ctx, const AttentionSpec& a, const CoreInputs& in) {
  const std::int64_t b = std::max<std::int64_t>(1, ctx.split.micro_batch), t = ctx.tokens();
  const std::int64_t heads = per_rank(a.heads, ctx.split.tp), d = a.qk_dim;
  Operation op;
  op.module = Module::core_attention;
  op.inputs = {in.q, in.k, in.v, in.decay, in.beta};
  op.output = tensor_bytes(t, heads * a.v_dim);
  op.output_stays = true;
  if (ctx.split.cp > 1) {
    op.forward = state_exchange(ctx, Pass::forward, heads, d);
    op.backward = state_exchange(ctx, Pass::input_grad, heads, d);
  }
  op.forward.push_back(compute_step(kda_kernel("kda_core", Pass::forward, b, t / b, heads, d)));
  op.backward.push_back(compute_step(kda_kernel("kda_core", Pass::input_grad, b, t / b, heads, d)));
  op.forward.back().kernel.launches = 6;
  op.backward.back().kernel.launches = 11;
  op.forward_scratch = Bytes(t * heads * d * kForwardScratchPerDim);
  // The gradients of q, k, v and g appear after the peak, from the scratch's own FP32 tensors.
  op.gradient_scratch = Bytes(t * heads * d * (kBackwardScratchPerDim - 8));
  const Node core = ctx.graph.add(std::move(op));
  ctx.graph.keep(in.q, core, "kda.q_conv");
  ctx.graph.keep(in.k, core, "kda.k_conv");
  ctx.graph.keep(in.v, core, "kda.v_conv");
  ctx.graph.keep(in.decay, core, "kda.decay");
  ctx.graph.keep_extra(core, "kda.inverse_norms", Bytes(8 * t * heads), Dtype::fp32);
  ctx.graph.keep_extra(core, "kda.beta", Bytes(4 * t * heads), Dtype::fp32);
  ctx.graph.keep_extra(core, "kda.aqk_akk", Bytes(2 * t * heads * kChunk * 2));
  return core;
}

// With an output gate and a fused stack, norm and gate are one kernel, which attention_output lists.
Node head_norm(LayerContext& ctx, const AttentionSpec& a, Node core) {
  if (!ctx.eager() && a.output_gate != GateKind::none) return core;
  const std::int64_t width = per_rank(a.heads, ctx.split.tp) * a.v_dim;
  const Node self = pointwise(ctx, {.name = "kda_head_norm",
                                    .module = Module::gate,
                                    .cls = MemoryClass::norm,
                                    .inputs = {core},
                                    .output = tensor_bytes(ctx.tokens(), width),
                                    .elements = ctx.tokens() * width,
                                    .forward = 4,
                                    .backward = 6,
                                    .backward_launches = 2});
  ctx.graph.keep(core, self, "kda.core_out");
  return self;
}

}  // namespace

Node kda_block(LayerContext& ctx, const AttentionSpec& a, Node normed) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden, heads = per_rank(a.heads, ctx.split.tp);
  const std::int64_t qk = heads * a.qk_dim, v = heads * a.v_dim;
  const Node entered = tp_enter(ctx, normed, h, Module::qkv_proj);
  auto project = [&](const char* name, Module module, std::int64_t n, bool first) {
    return linear(ctx, {.name = name,
                        .kept = "attn.x",
                        .module = module,
                        .input = entered,
                        .kept_input = normed,
                        .m = t,
                        .n = n,
                        .k = h,
                        .quantize_input = first,
                        .regather = first});
  };
  const Node q = short_conv(ctx, "kda_conv_q", "kda.q_pre", a, project("kda_q_proj", Module::qkv_proj, qk, true), qk);
  const Node k = short_conv(ctx, "kda_conv_k", "kda.k_pre", a, project("kda_k_proj", Module::qkv_proj, qk, false), qk);
  const Node value =
      short_conv(ctx, "kda_conv_v", "kda.v_pre", a, project("kda_v_proj", Module::qkv_proj, v, false), v);
  const Node decay_low = linear(ctx, {.name = "kda_decay_down",
                                      .kept = "attn.x",
                                      .module = Module::qkv_proj,
                                      .input = normed,
                                      .m = ctx.shard_tokens(),
                                      .n = a.decay_rank,
                                      .k = h,
                                      .quantize_input = false});
  const Node decay_in = tp_enter(ctx, decay_low, a.decay_rank, Module::qkv_proj);
  const Node decay = linear(ctx, {.name = "kda_decay_up",
                                  .kept = "kda.decay_rank",
                                  .module = Module::qkv_proj,
                                  .input = decay_in,
                                  .kept_input = decay_low,
                                  .m = t,
                                  .n = qk,
                                  .k = a.decay_rank,
                                  .regather = true});
  const Node beta = project("kda_beta_proj", Module::qkv_proj, heads, false);
  const Node core = chunked_core(ctx, a, {q, k, value, decay, beta});
  const Node headed = head_norm(ctx, a, core);
  return attention_output(ctx, {a, headed, normed, entered});
}

}  // namespace k3sim
