// Kimi delta attention: q, k, v projections with depth-wise causal short convolutions (SiLU inside), low-rank decay
// gate, beta, the chunked gated-delta-rule core (FLA chunk_kda: gate, l2 norm and sigmoid inside), head-wise norm,
// output gate.
//
// Kept per token and head by the core (default recompute, d = 128): q and k normalised 512 B, inverse norms 8, v 256,
// raw gate 256, beta 4, Aqk and Akk 256; in all 1,292 B. Backward scratch: dq, dk, dg twice in FP32, cumulative gate,
// w, u, decayed q and k, v_new, h and dh, two FP32 dA, dv = 52 d B (6,656).
// Context parallelism (KCP): conv tails of 3 tokens, a pre-pass that reduces the slice to (state, transition), one FP32
// all-gather of heads x d x 2d values per rank (12.58 MB for K3), a merge; the same again in backward. Other exchanges:
// context_parallel.h.
// Source: k3-facts sections 1.2, 2.6, 4.1, 4.2, 4.7; FLA fla/ops/kda, fla/ops/cp.
#include <algorithm>

#include "models/transformer/context_parallel.h"
#include "models/transformer/kda_scratch.h"
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

constexpr std::int64_t kChunk = 64;
constexpr std::int64_t kBackwardScratchPerDim = 52;  // bytes per token, head and head dimension
constexpr std::int64_t kForwardScratchPerDim = 18;   // w, u, decayed q and k, v_new (10), h (4), cumulative gate (4)

// Pieces of the sequence on one rank: contiguous slices are one piece, zigzag slices two.
std::int64_t pieces(const SplitConfig& split) {
  return split.cp > 1 && !split.cp_contiguous ? 2 : 1;
}

std::vector<Step> state_exchange(const LayerContext& ctx, Pass pass, std::int64_t heads, std::int64_t d) {
  const bool forward = pass == Pass::forward;
  const int ranks = ctx.split.cp;
  const Bytes received = kcp_received(kda_exchange(ctx.split), ranks, heads, d) * pieces(ctx.split);
  CommOp gather;
  gather.kind = CommKind::all_gather;
  gather.group = GroupKind::cp;
  gather.bytes = Bytes(received.count() / (ranks - 1) * ranks);  // as a collective counts its buffer
  const Bytes merge_traffic = gather.bytes + Bytes(heads * d * d * 4);
  const std::int64_t longest = ctx.split.longest_document > 0 ? ctx.split.longest_document : ctx.split.sequence;
  const std::int64_t walked = std::min(ctx.tokens() / std::max<std::int64_t>(1, ctx.split.micro_batch), longest);
  // The pre-pass walks the last local document only: nothing before it can go on on the next rank.
  return {
      compute_step(kda_prepass_kernel(forward ? "kcp_prepass" : "kcp_prepass_grad", pass, ctx.split.micro_batch, walked,
                                      heads, d)),
      comm_step(forward ? "kcp_state_gather" : "kcp_state_grad_gather", Lane::cp_comm, gather),
      compute_step(memory_kernel(forward ? "kcp_merge" : "kcp_merge_grad", pass, MemoryClass::copy, merge_traffic))};
}

// Rows for heads: q, k, v, decay and output of every token, to and from the rank that has the head.
std::vector<Step> head_exchange(const LayerContext& ctx, const AttentionSpec& a, std::int64_t heads, bool in) {
  CommOp op;
  op.kind = CommKind::all_to_all;
  op.group = GroupKind::cp;
  op.bytes = tensor_bytes(ctx.tokens(), heads * (in ? 3 * a.qk_dim + a.v_dim : a.v_dim));
  return {comm_step(in ? "kda_heads_in" : "kda_heads_out", Lane::cp_comm, op)};
}

// The core over `chains` sequences of `tokens`, each cut into segments when few heads leave the GPU empty.
std::vector<Step> core_steps(const LayerContext& ctx, Pass pass, std::int64_t chains, std::int64_t tokens,
                             std::int64_t heads, std::int64_t d) {
  std::int64_t segments = ctx.split.kda_segments == 0 ? kda_segments(chains * heads) : ctx.split.kda_segments;
  segments = std::clamp<std::int64_t>(segments, 1, std::max<std::int64_t>(1, tokens / kChunk));
  std::vector<Step> out;
  const bool forward = pass == Pass::forward;
  if (segments > 1) {
    out.push_back(compute_step(kda_prepass_as_core(forward ? "kda_segment_prepass" : "kda_segment_prepass_grad",
                                                   chains * segments, tokens / segments, heads, d)));
    const Bytes states = kcp_state_bytes(heads, d) * (chains * segments);
    out.push_back(compute_step(memory_kernel("kda_segment_merge", pass, MemoryClass::copy, states * 2)));
  }
  out.push_back(compute_step(kda_kernel("kda_core", pass, chains * segments, tokens / segments, heads, d)));
  out.back().kernel.launches = forward ? 6 : 11;
  return out;
}

void append(std::vector<Step>& to, const std::vector<Step>& steps) {
  to.insert(to.end(), steps.begin(), steps.end());
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
  const std::int64_t ranks = ctx.split.cp;
  if (ranks > 1 && kda_exchange(ctx.split) == KdaExchange::head_all_to_all) {
    const std::int64_t own = per_rank(heads, static_cast<int>(ranks)), chains = b * ctx.split.documents;
    for (Pass pass : {Pass::forward, Pass::input_grad}) {
      std::vector<Step>& steps = pass == Pass::forward ? op.forward : op.backward;
      append(steps, head_exchange(ctx, a, heads, pass == Pass::forward));
      append(steps, core_steps(ctx, pass, chains, t * ranks / chains, own, d));
      append(steps, head_exchange(ctx, a, heads, pass != Pass::forward));
    }
  } else {
    const std::int64_t chains = b * std::max(pieces(ctx.split), ctx.split.documents / ranks);
    if (ranks > 1) {
      op.forward = state_exchange(ctx, Pass::forward, heads, d);
      op.backward = state_exchange(ctx, Pass::input_grad, heads, d);
    }
    append(op.forward, core_steps(ctx, Pass::forward, chains, t / chains, heads, d));
    append(op.backward, core_steps(ctx, Pass::input_grad, chains, t / chains, heads, d));
  }
  op.forward_scratch = Bytes(t * heads * d * kForwardScratchPerDim);
  // The gradients of q, k, v and g appear after the peak, from the scratch's own FP32 tensors.
  op.gradient_scratch = Bytes(t * heads * d * (kBackwardScratchPerDim - 8));
  op.forward_script = kda_forward_script(t * heads, d);
  op.backward_script = kda_backward_script(t * heads, d);
  const Node core = ctx.graph.add(std::move(op));
  if (ctx.eager()) {  // chunk_kda keeps what it normalised; the convolutions' outputs go
    ctx.graph.keep_extra(core, "kda.q_normed", ctx.graph.bytes(in.q));
    ctx.graph.keep_extra(core, "kda.k_normed", ctx.graph.bytes(in.k));
  } else {
    ctx.graph.keep(in.q, core, "kda.q_conv");
    ctx.graph.keep(in.k, core, "kda.k_conv");
  }
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
