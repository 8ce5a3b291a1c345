// The router of a mixture of experts: logits, scores, selection of the top k, normalised weights, sorted row indices.
// Source: k3-facts sections 1.2, 2.4; Megatron-LM core/transformer/moe/router.py; DeepSeek-V3 profile data (BF16
// products with an FP32 result).
#include "models/transformer/parts.h"

namespace k3sim {

// Logits (FP32 products, or BF16 ones with an FP32 result), FP32 scores, selection, normalised weights. The output is
// the [tokens, topk] weight in FP32.
Node moe_router(LayerContext& ctx, const FfnSpec& f, Node normed, std::int64_t tokens) {
  const auto t = static_cast<double>(tokens), h = static_cast<double>(ctx.model.hidden);
  const auto scores = t * static_cast<double>(f.experts), chosen = t * static_cast<double>(f.topk);
  Operation op = memory_operation(Module::router, {normed}, Bytes(4 * tokens * f.topk));
  const Kernel logits =
      gemm_kernel("router", Pass::forward, ctx.split.router_dtype, tokens, f.experts, ctx.model.hidden);
  Kernel select;
  select.family = KernelFamily::topk;
  select.dtype = Dtype::fp32;
  select.name = "router_topk";
  select.m = tokens;
  select.n = f.experts;
  select.k = f.topk;
  select.bytes = Bytes::ceil(4 * scores + 12 * chosen);
  if (ctx.eager()) op.forward = {memory_step("router_to_fp32", Pass::forward, MemoryClass::copy, 6 * t * h)};
  op.forward.push_back(compute_step(logits));
  op.forward.push_back(memory_step("router_scores", Pass::forward, MemoryClass::activation, 8 * scores));
  op.forward.push_back(compute_step(select));
  // Gather of the chosen scores, their sum and division, and the sort of the row indices by expert.
  op.forward.push_back(
      memory_step("router_weights_sort", Pass::forward, MemoryClass::gather, 120 * chosen, ctx.eager() ? 12 : 3));
  op.backward = {memory_step("router_scores_grad", Pass::input_grad, MemoryClass::activation, 16 * scores + 24 * chosen,
                             ctx.eager() ? 8 : 2)};
  Kernel grad = logits;
  grad.pass = Pass::input_grad;
  op.backward.push_back(compute_step(grad));
  if (ctx.eager()) {
    op.backward.push_back(memory_step("router_grad_to_bf16", Pass::input_grad, MemoryClass::copy, 6 * t * h));
  }
  grad.pass = Pass::weight_grad;
  op.backward.push_back(compute_step(grad));
  if (ctx.eager()) op.gradient_scratch = tensor_bytes(tokens, ctx.model.hidden, 4);
  const Node self = ctx.graph.add(std::move(op));
  if (ctx.eager())
    ctx.graph.keep_extra(self, "moe.x_fp32", tensor_bytes(tokens, ctx.model.hidden, 4), Dtype::fp32);
  else
    ctx.graph.keep(normed, self, "moe.x");
  ctx.graph.keep_extra(self, "moe.scores", tensor_bytes(tokens, f.experts, 4), Dtype::fp32);
  // Chosen indices and the two orders that permute and restore rows (int64), weights before and after normalisation.
  ctx.graph.keep_extra(self, "moe.routing", Bytes(tokens * f.topk * (3 * 8 + 2 * 4)), Dtype::fp32);
  return self;
}

}  // namespace k3sim
