// Output side of every attention kind: optional sigmoid gate (full rank in K3, low rank in Kimi Linear), output
// projection, end of the tensor-parallel region.
// Gate bytes per element: fused 6 forward and 10 backward; eager sigmoid 4 and 6, product 6 and 12.
// Source: k3-facts sections 1.2 and 1.5; Kimi Linear report (arXiv:2510.26692); measurements README.
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

// Pre-activation of the gate, heads/tp * v_dim wide.
Node gate_projection(LayerContext& ctx, const AttentionOutput& o, std::int64_t width) {
  const AttentionSpec& a = o.attention;
  Linear gate{.name = "gate_proj",
              .kept = "attn.x",
              .module = Module::qkv_proj,
              .input = o.entered,
              .kept_input = o.normed,
              .m = ctx.tokens(),
              .n = width,
              .k = ctx.model.hidden,
              .quantize_input = false,
              .regather = true};
  if (a.output_gate == GateKind::low_rank) {
    const Node down = linear(ctx, {.name = "gate_down",
                                   .kept = "attn.x",
                                   .module = Module::qkv_proj,
                                   .input = o.normed,
                                   .m = ctx.shard_tokens(),
                                   .n = a.gate_rank,
                                   .k = ctx.model.hidden,
                                   .quantize_input = false});
    gate.kept = "attn.gate_rank";
    gate.input = tp_enter(ctx, down, a.gate_rank, Module::qkv_proj);
    gate.kept_input = down;
    gate.k = a.gate_rank;
    gate.regather = false;
  }
  return linear(ctx, gate);
}

Node gated(LayerContext& ctx, const AttentionOutput& o, std::int64_t width) {
  const Node gate = gate_projection(ctx, o, width);
  const std::int64_t elements = ctx.tokens() * width;
  Pointwise product{.name = "gate_sigmoid_mul",
                    .module = Module::gate,
                    .inputs = {o.core, gate},
                    .output = Bytes(2 * elements),
                    .elements = elements,
                    .forward = 6,
                    .backward = 10};
  if (ctx.eager()) {
    const Node sigmoid = pointwise(ctx, {.name = "gate_sigmoid",
                                         .module = Module::gate,
                                         .inputs = {gate},
                                         .output = Bytes(2 * elements),
                                         .elements = elements,
                                         .forward = 4,
                                         .backward = 6});
    ctx.graph.keep(sigmoid, sigmoid, "attn.gate");
    product.name = "gate_mul";
    product.inputs[1] = sigmoid;
    product.product = true;
    product.backward = 12;
    product.backward_launches = 2;
  }
  const Node value = pointwise(ctx, product);
  if (!ctx.eager()) ctx.graph.keep(gate, value, "attn.gate");
  ctx.graph.keep(o.core, value, "attn.gate_input");
  return value;
}

}  // namespace

Node attention_output(LayerContext& ctx, const AttentionOutput& o) {
  const AttentionSpec& a = o.attention;
  const std::int64_t width = per_rank(a.heads, ctx.split.tp) * a.v_dim;
  const Node value = a.output_gate == GateKind::none ? o.core : gated(ctx, o, width);
  return closing_projection(ctx, {.name = "attn_out_proj",
                                  .kept = "attn.out_input",
                                  .module = Module::attn_out,
                                  .input = value,
                                  .k = width,
                                  .bias = a.out_bias});
}

}  // namespace k3sim
