// Dense feed-forward networks, plain (GELU, squared ReLU) and gated (SwiGLU, SiTU-GLU), and the activation kernels.
// Bytes per output element: plain 4 forward, 6 backward; gated fused 6 forward, 10 backward. Eager SwiGLU is silu (4)
// and a product (6) and keeps silu's output too; SiTU is always one compiled kernel, as in the measured modules.
// Source: k3-facts sections 1.2, 1.5; hardware notes section 5.4; arXiv:2205.05198 section 4.1 (19 s b h).
#include "models/transformer/parts.h"

namespace k3sim {

namespace {

struct ActivationCost {
  const char* name;
  double forward, backward;
};

ActivationCost cost_of(Activation kind) {
  switch (kind) {
    case Activation::gelu: return {"gelu", 4, 6};
    case Activation::squared_relu: return {"squared_relu", 4, 6};
    case Activation::swiglu: return {"swiglu", 6, 10};
    case Activation::situ_glu: return {"situ_glu", 6, 10};
  }
  return {"activation", 4, 6};
}

}  // namespace

Node activation(LayerContext& ctx, const ActivationCall& call) {
  Pointwise p;
  p.module = call.module;
  p.inputs = {call.input};
  p.output = tensor_bytes(call.rows, call.width);
  p.elements = call.rows * call.width;
  p.lane = call.lane;
  if (call.weights >= 0) p.inputs.push_back(call.weights);
  const bool two_kernels = call.kind == Activation::swiglu && ctx.eager();
  const ActivationCost cost = two_kernels ? ActivationCost{"silu", 4, 6} : cost_of(call.kind);
  p.name = cost.name;
  p.forward = cost.forward;
  p.backward = cost.backward;
  const Node first = pointwise(ctx, p);
  ctx.graph.keep(call.input, first, call.kept);
  if (!two_kernels) return first;
  p.name = "silu_mul";
  p.inputs = {first};
  p.forward = 6;
  p.backward = 12;
  p.backward_launches = 2;
  const Node product = pointwise(ctx, p);
  ctx.graph.keep(first, product, "ffn.silu");
  return product;
}

Node dense_ffn_block(LayerContext& ctx, const FfnSpec& f, Node normed) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden, width = per_rank(f.intermediate, ctx.split.tp);
  const std::int64_t up_width = is_gated(f.activation) ? 2 * width : width;
  const Node entered = tp_enter(ctx, normed, h, Module::ffn_up);
  const Node up = linear(ctx, {.name = "ffn_up", .kept = "ffn.x", .module = Module::ffn_up, .input = entered,
                               .kept_input = normed, .m = t, .n = up_width, .k = h, .regather = true,
                               .bias = f.bias});
  const Node act = activation(ctx, {.kind = f.activation, .kept = "ffn.up", .module = Module::activation, .input = up,
                                    .rows = t, .width = width});
  const Node down = linear(ctx, {.name = "ffn_down", .kept = "ffn.act", .module = Module::ffn_down, .input = act,
                                 .m = t, .n = h, .k = width, .bias = f.bias});
  return tp_exit(ctx, down, h, Module::ffn_down);
}

}  // namespace k3sim
