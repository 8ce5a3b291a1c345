// Multi-head latent attention: query and key/value low-rank projections with norms, expansion per head, the shared
// positional slice (rotated, or NoPE as in K3), softmax core with 192/128 heads, optional full-rank sigmoid output
// gate.
//
// Tensor parallelism: the down projections are replicated and run on the sequence shard; their narrow results are
// gathered. Context parallelism: the compressed latents (576 values per token in K3) are gathered and every rank
// expands all of them; other exchanges in context_parallel.h.
// Source: k3-facts sections 1.2, 1.5, 2.7; DeepSeek-V3 report (arXiv:2412.19437) section 2.1.1; measured K3 module
// (the value is a view of the expanded kv tensor in an eager stack, so that whole tensor is kept).
#include "models/transformer/context_parallel.h"
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

struct Sizes {
  std::int64_t heads, nope, query, key, value, expanded;  // columns per rank
};

Sizes sizes_of(const LayerContext& ctx, const AttentionSpec& a) {
  const std::int64_t heads = per_rank(a.heads, ctx.split.tp), nope = a.qk_dim - a.rope_dim;
  return {heads, nope, heads * a.qk_dim, heads * a.qk_dim, heads * a.v_dim, heads * (nope + a.v_dim)};
}

Node query(LayerContext& ctx, const AttentionSpec& a, Node normed, const Sizes& s) {
  const std::int64_t shard = ctx.shard_tokens(), h = ctx.model.hidden;
  if (a.q_lora_rank == 0) {
    const Node entered = tp_enter(ctx, normed, h, Module::qkv_proj);
    return linear(ctx, {.name = "q_proj",
                        .kept = "attn.x",
                        .module = Module::qkv_proj,
                        .input = entered,
                        .kept_input = normed,
                        .m = ctx.tokens(),
                        .n = s.query,
                        .k = h,
                        .regather = true});
  }
  const Node down = linear(ctx, {.name = "q_a_proj",
                                 .kept = "attn.x",
                                 .module = Module::qkv_proj,
                                 .input = normed,
                                 .m = shard,
                                 .n = a.q_lora_rank,
                                 .k = h});
  const Node latent = norm(ctx, {.name = "q_a_norm",
                                 .kept = "mla.q_a",
                                 .module = Module::qkv_proj,
                                 .input = down,
                                 .rows = shard,
                                 .width = a.q_lora_rank});
  const Node entered = tp_enter(ctx, latent, a.q_lora_rank, Module::mla_up_proj);
  return linear(ctx, {.name = "q_b_proj",
                      .kept = "mla.q_latent",
                      .module = Module::mla_up_proj,
                      .input = entered,
                      .kept_input = latent,
                      .m = ctx.tokens(),
                      .n = s.query,
                      .k = a.q_lora_rank,
                      .regather = true});
}

// An all-gather over the context ranks moves `gathered` columns per token; `kept` of them form the output tensor.
struct ContextGather {
  MlaExchange when;  // the form of exchange that this gather belongs to; under any other it moves nothing
  const char *forward_name, *backward_name;
  std::int64_t kept, gathered;
};

Node gather_over_context(LayerContext& ctx, Node own, const ContextGather& g) {
  if (ctx.split.cp == 1 || mla_exchange(ctx.split) != g.when) return own;
  const std::int64_t rows = ctx.tokens() * ctx.split.cp;
  CommOp gather;
  gather.kind = CommKind::all_gather;
  gather.group = GroupKind::cp;
  gather.bytes = tensor_bytes(rows, g.gathered);
  CommOp scatter = gather;
  scatter.kind = CommKind::reduce_scatter;
  return exchange(ctx, {.forward_name = g.forward_name,
                        .backward_name = g.backward_name,
                        .lane = Lane::cp_comm,
                        .module = Module::mla_up_proj,
                        .input = own,
                        .output = tensor_bytes(rows, g.kept),
                        .forward = gather,
                        .backward = scatter});
}

Node gather_latents(LayerContext& ctx, Node latent, std::int64_t width) {
  return gather_over_context(ctx, latent,
                             {MlaExchange::latent, "cp_gather_latent", "cp_scatter_latent_grad", width, width});
}

// Rows whose keys and values this rank expands: all of them from gathered latents, else its own.
std::int64_t expanded_rows(const LayerContext& ctx) {
  return ctx.split.cp > 1 && mla_exchange(ctx.split) == MlaExchange::latent ? ctx.tokens() * ctx.split.cp
                                                                            : ctx.tokens();
}

// Expanded keys and values of all ranks; one gather moves both (heads x (qk + v) values per token).
Node gather_expanded(LayerContext& ctx, Node own, std::int64_t width, std::int64_t total_width) {
  return gather_over_context(ctx, own,
                             {MlaExchange::expanded, "cp_gather_kv", "cp_scatter_kv_grad", width, total_width});
}

// Assembles keys (and rotates the shared slice of queries and keys when the model does).
Node assemble_key(LayerContext& ctx, const AttentionSpec& a, const Sizes& s, const std::vector<Node>& inputs) {
  const std::int64_t rows = expanded_rows(ctx);
  const double rotated = a.rotary ? static_cast<double>(ctx.tokens() * (s.heads + 1) * a.rope_dim) : 0;
  const double eager = ctx.eager() ? 20.0 : 4.0;
  const auto written = static_cast<double>(rows * s.key);
  return pointwise(ctx, {.name = a.rotary ? "mla_rope_cat" : "mla_key_cat",
                         .module = Module::mla_up_proj,
                         .cls = MemoryClass::copy,
                         .inputs = inputs,
                         .output = tensor_bytes(rows, s.key),
                         .elements = rows * s.key,
                         // PyTorch's cat copies strided pieces unvectorised: 297 us forward and 353 us backward for
                         // 75 M values on an H200 (eager pieces profiled 2026-11-29), five times a streaming copy.
                         .forward = (ctx.eager() ? 16.6 : 4.0) + eager * rotated / written,
                         // Backward splits the key gradient, joins it with the value gradient, sums the shared slice.
                         .backward = (ctx.eager() ? 19.7 : 6.0) + eager * rotated / written,
                         .forward_launches = a.rotary && ctx.eager() ? 11 : 1,
                         .backward_launches = 3});
}

}  // namespace

Node mla_block(LayerContext& ctx, const AttentionSpec& a, Node normed) {
  const Sizes s = sizes_of(ctx, a);
  const std::int64_t shard = ctx.shard_tokens(), h = ctx.model.hidden, rows = expanded_rows(ctx);
  const std::int64_t compressed = a.kv_lora_rank + a.rope_dim;
  const Node q = query(ctx, a, normed, s);
  const Node down = linear(ctx, {.name = "kv_a_proj",
                                 .kept = "attn.x",
                                 .module = Module::qkv_proj,
                                 .input = normed,
                                 .m = shard,
                                 .n = compressed,
                                 .k = h,
                                 .quantize_input = a.q_lora_rank == 0});
  const Node latent = norm(ctx, {.name = "kv_a_norm",
                                 .kept = "mla.kv_a",
                                 .module = Module::qkv_proj,
                                 .input = down,
                                 .rows = shard,
                                 .width = a.kv_lora_rank});
  const Node entered = gather_latents(ctx, tp_enter(ctx, latent, compressed, Module::mla_up_proj), compressed);
  const Node expanded = linear(ctx, {.name = "kv_b_proj",
                                     .kept = "mla.kv_latent",
                                     .module = Module::mla_up_proj,
                                     .input = entered,
                                     .kept_input = latent,
                                     .m = rows,
                                     .n = s.expanded,
                                     .k = a.kv_lora_rank,
                                     .regather = true});
  ctx.graph.no_fan_in(expanded);  // the key assembly's backward joins both gradients
  const Node value = pointwise(ctx, {.name = "mla_value_view",
                                     .module = Module::mla_up_proj,
                                     .inputs = {expanded},
                                     .output = tensor_bytes(rows, s.value),
                                     .view = ctx.eager()});
  const Node key = gather_expanded(ctx, assemble_key(ctx, a, s, {expanded}), s.key, s.key + s.value);
  const Node core = softmax_core(ctx, a, {q, key, value}, ctx.tokens() * ctx.split.cp);
  ctx.graph.keep(q, core, "attn.q");
  ctx.graph.keep(key, core, "attn.k");
  if (ctx.eager())
    ctx.graph.keep(expanded, core, "attn.kv_expanded");
  else
    ctx.graph.keep(value, core, "attn.v");
  const bool full_gate = a.output_gate == GateKind::full;
  const Node full_rows = full_gate ? tp_enter(ctx, normed, h, Module::qkv_proj) : normed;
  return attention_output(ctx, {a, core, normed, full_rows});
}

}  // namespace k3sim
