// Multi-head, grouped-query and multi-query softmax attention, and the parts all attention kinds share: the softmax
// core (flash, or with materialised scores as in the 2021/22 Megatron stacks) and the output projection with its gate.
//
// Kept by the flash core: q, k, v, output, log-sum-exp. Kept without it (arXiv:2205.05198 section 4.1): softmax output,
// dropout mask (1 B) and dropout output, 5 a s^2 b bytes in all.
// Context parallelism: keys and values of all ranks pass by on the cp lane (ring, beside the core).
// Source: k3-facts sections 1.2 and 1.5; arXiv:2205.05198; Megatron-LM
// core/transformer/{attention,dot_product_attention}.py.
#include <algorithm>

#include "models/transformer/context_parallel.h"
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

std::int64_t sequences(const LayerContext& ctx) {
  return std::max<std::int64_t>(1, ctx.split.micro_batch);
}

// Scores materialised: QK^T, softmax with scale and mask, dropout, PV; full square, as those stacks compute it.
Node materialised_core(LayerContext& ctx, const AttentionSpec& a, const std::vector<Node>& qkv) {
  const std::int64_t b = sequences(ctx), s = ctx.tokens() / b, heads = per_rank(a.heads, ctx.split.tp);
  const std::int64_t scores = b * heads * s * s;
  auto batched = [&](const char* name, std::int64_t n, std::int64_t k, std::vector<Node> inputs, Bytes output) {
    Operation op;
    op.module = Module::core_attention;
    op.inputs = std::move(inputs);
    op.output = output;
    op.output_stays = true;
    op.forward = {compute_step(gemm_kernel(name, Pass::forward, Dtype::bf16, b * heads * s, n, k))};
    Kernel back = gemm_kernel(name, Pass::input_grad, Dtype::bf16, b * heads * s, n, k);
    op.backward = {compute_step(back), compute_step(back)};  // gradients of both operands
    for (Step* step : {&op.forward[0], &op.backward[0], &op.backward[1]}) step->kernel.batch = b * heads;
    return ctx.graph.add(std::move(op));
  };
  const bool fused = !ctx.eager();
  const Node product = batched("attn_scores", s, a.qk_dim, qkv, Bytes(2 * scores));
  for (Node n : qkv) ctx.graph.keep(n, product, "attn.qkv");
  Node probs = pointwise(ctx, {.name = "attn_softmax",
                               .module = Module::core_attention,
                               .cls = MemoryClass::softmax,
                               .inputs = {product},
                               .output = Bytes(2 * scores),
                               .elements = scores,
                               .forward = fused ? 4.0 : 12.0,
                               .backward = fused ? 6.0 : 14.0,
                               .forward_launches = fused ? 1 : 3,
                               .backward_launches = fused ? 1 : 3});
  ctx.graph.keep(probs, probs, "attn.softmax");
  if (ctx.split.dropout) {
    probs = pointwise(ctx, {.name = "attn_dropout",
                            .module = Module::core_attention,
                            .inputs = {probs},
                            .output = Bytes(2 * scores),
                            .elements = scores,
                            .forward = 5,
                            .backward = 5});
    ctx.graph.keep_extra(probs, "attn.dropout_mask", Bytes(scores), Dtype::fp8, true);
  }
  const Node out = batched("attn_context", a.v_dim, s, {probs}, tensor_bytes(ctx.tokens(), heads * a.v_dim));
  ctx.graph.keep(probs, out, "attn.dropped_softmax");
  return out;
}

// Keys and values of the other context-parallel ranks pass by while the core works; backward carries them again with
// their gradients.
Step ring_step(const AttentionShape& shape, std::int64_t keys, Pass pass) {
  CommOp ring;
  ring.kind = CommKind::ring_exchange;
  ring.group = GroupKind::cp;
  ring.bytes =
      tensor_bytes(shape.batch * keys, shape.kv_heads * (shape.dim_qk + shape.dim_v)) * (pass == Pass::forward ? 1 : 2);
  Step step = comm_step(pass == Pass::forward ? "cp_ring_kv" : "cp_ring_kv_grad", Lane::cp_comm, ring);
  step.detached = true;
  return step;
}

Node rope(LayerContext& ctx, Node qkv, std::int64_t rotated) {
  const bool fused = !ctx.eager();
  // Eager rotation: negate, concatenate, two products, one sum.
  return pointwise(ctx, {.name = "rope",
                         .module = Module::qkv_proj,
                         .inputs = {qkv},
                         .output = ctx.graph.bytes(qkv),
                         .elements = rotated,
                         .forward = fused ? 4.0 : 20.0,
                         .backward = fused ? 4.0 : 20.0,
                         .forward_launches = fused ? 1 : 10,
                         .backward_launches = fused ? 1 : 10});
}

}  // namespace

Node softmax_core(LayerContext& ctx, const AttentionSpec& a, const std::vector<Node>& qkv, std::int64_t kv_tokens) {
  const std::int64_t b = sequences(ctx), heads = per_rank(a.heads, ctx.split.tp);
  AttentionShape shape;
  shape.batch = b;
  shape.heads = heads;
  shape.kv_heads = a.kind == AttentionKind::mla ? heads : std::max<std::int64_t>(1, a.kv_heads / ctx.split.tp);
  shape.seq_q = ctx.tokens() / b;
  shape.seq_k = kv_tokens / b;
  shape.dim_qk = a.qk_dim;
  shape.dim_v = a.v_dim;
  shape.window = a.window;
  const std::int64_t keys = shape.seq_k;
  // Packed documents and uneven slices change how many keys the busiest rank's queries see.
  if (ctx.split.attended > 0 && a.window == 0) shape.seq_k = ctx.split.attended;
  const bool mla = a.kind == AttentionKind::mla, split = ctx.split.cp > 1;
  const bool by_heads = split && mla && mla_exchange(ctx.split) == MlaExchange::head_all_to_all;
  if (by_heads) {  // whole sequence, own heads: even work
    shape.heads = shape.kv_heads = per_rank(heads, ctx.split.cp);
    shape.seq_q = keys;
    shape.seq_k = std::min(keys, ctx.split.longest_document > 0 ? ctx.split.longest_document : keys);
  }
  Operation op;
  op.module = Module::core_attention;
  op.inputs = qkv;
  op.output = tensor_bytes(ctx.tokens(), heads * a.v_dim);
  op.output_stays = true;
  if (split && (!mla || mla_exchange(ctx.split) == MlaExchange::ring)) {
    op.forward = {ring_step(shape, keys, Pass::forward)};
    op.backward = {ring_step(shape, keys, Pass::input_grad)};
  }
  const auto rows_for_heads = [&](const char* name, std::int64_t width) {
    CommOp exchange;
    exchange.kind = CommKind::all_to_all;
    exchange.group = GroupKind::cp;
    exchange.bytes = tensor_bytes(ctx.tokens(), heads * width);
    return comm_step(name, Lane::cp_comm, exchange);
  };
  if (by_heads) {
    op.forward.push_back(rows_for_heads("mla_heads_in", 2 * a.qk_dim + a.v_dim));
    op.backward.push_back(rows_for_heads("mla_heads_grad_in", a.v_dim));
  }
  op.forward.push_back(compute_step(attention_kernel("attention", Pass::forward, shape)));
  op.backward.push_back(compute_step(attention_kernel("attention", Pass::input_grad, shape)));
  if (by_heads) {
    op.forward.push_back(rows_for_heads("mla_heads_out", a.v_dim));
    op.backward.push_back(rows_for_heads("mla_heads_grad_out", 2 * a.qk_dim + a.v_dim));
  }
  // FP32 accumulator of the query gradient and the row sums of output x output gradient.
  op.gradient_scratch = tensor_bytes(ctx.tokens(), heads * (a.qk_dim + 1), 4);
  // The workspace is asked for when the gradients are there (PyTorch ATen/native/cudnn/MHA.cpp).
  for (std::size_t i = 0; i < qkv.size(); ++i) op.backward_script.result(static_cast<int>(i));
  op.backward_script.make(op.gradient_scratch);
  const Node core = ctx.graph.add(std::move(op));
  ctx.graph.keep(core, core, "attn.out");
  ctx.graph.keep_extra(core, "attn.lse", tensor_bytes(ctx.tokens(), heads, 4), Dtype::fp32);
  return core;
}

Node mha_block(LayerContext& ctx, const AttentionSpec& a, Node normed) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden;
  const std::int64_t q = per_rank(a.heads, ctx.split.tp) * a.qk_dim;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, a.kv_heads / ctx.split.tp);
  const std::int64_t k = kv_heads * a.qk_dim, v = kv_heads * a.v_dim;
  const Node entered = tp_enter(ctx, normed, h, Module::qkv_proj);
  auto project = [&](const char* name, std::int64_t n, bool first) {
    return linear(ctx, {.name = name,
                        .kept = "attn.x",
                        .module = Module::qkv_proj,
                        .input = entered,
                        .kept_input = normed,
                        .m = t,
                        .n = n,
                        .k = h,
                        .quantize_input = first,
                        .regather = first,
                        .bias = a.qkv_bias});
  };
  std::vector<Node> qkv;
  if (ctx.eager()) {
    qkv = {project("q_proj", q, true), project("k_proj", k, false), project("v_proj", v, false)};
  } else {
    qkv = {project("qkv_proj", q + k + v, true)};
  }
  if (a.qk_norm) {
    for (std::size_t i = 0; i < std::min<std::size_t>(2, qkv.size()); ++i) {
      const std::int64_t width = ctx.eager() ? (i == 0 ? q : k) : q + k;
      const Node raw = qkv[i];
      qkv[i] = pointwise(ctx, {.name = "qk_norm",
                               .module = Module::qkv_proj,
                               .cls = MemoryClass::norm,
                               .inputs = {raw},
                               .output = ctx.graph.bytes(raw),
                               .elements = t * width,
                               .forward = 4,
                               .backward = 6,
                               .forward_launches = ctx.eager() ? 1 : 2,
                               .backward_launches = 4});
      ctx.graph.keep(raw, qkv[i], "attn.qk_raw");
    }
  }
  if (a.rotary) {
    qkv[0] = rope(ctx, qkv[0], t * (ctx.eager() ? q : q + k));
    if (ctx.eager()) qkv[1] = rope(ctx, qkv[1], t * k);
  }
  if (!ctx.split.flash_attention) return attention_output(ctx, {a, materialised_core(ctx, a, qkv), normed, entered});
  const Node core = softmax_core(ctx, a, qkv, t * ctx.split.cp);
  static constexpr const char* kNames[] = {"attn.q", "attn.k", "attn.v"};
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    ctx.graph.keep(qkv[i], core, qkv.size() == 1 ? "attn.qkv" : kNames[i]);
  }
  return attention_output(ctx, {a, core, normed, entered});
}

Node attention_block(LayerContext& ctx, const AttentionSpec& a, Node normed) {
  switch (a.kind) {
    case AttentionKind::mha:
      return mha_block(ctx, a, normed);
    case AttentionKind::mla:
      return mla_block(ctx, a, normed);
    case AttentionKind::kda:
      return kda_block(ctx, a, normed);
  }
  return normed;
}

}  // namespace k3sim
