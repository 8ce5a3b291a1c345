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

// SiTU-GLU is bound by tanh and sigmoid, not by bandwidth: bytes that take as long at streaming rate. H200, 65536 x
// 3072 outputs: compiled Triton 1058 / 1382 us, this project's CUDA kernel 436 / 653 us forward / backward, against 6
// and 10 bytes per output at 4.5 TB/s (calibrate/measurements; eager pieces profiled 2026-11-29).
ActivationCost cost_of(Activation kind, bool eager) {
  switch (kind) {
    case Activation::gelu:
      return {"gelu", 4, 6};
    case Activation::squared_relu:
      return {"squared_relu", 4, 6};
    case Activation::swiglu:
      return {"swiglu", 6, 10};
    case Activation::situ_glu:
      return eager ? ActivationCost{"situ_glu", 23.7, 31} : ActivationCost{"situ_glu", 9.8, 14.6};
  }
  return {"activation", 4, 6};
}

// Eager SwiGLU: silu of the gate, then the product with the up half; the halves are views unless separate tensors.
Node eager_swiglu(LayerContext& ctx, const ActivationCall& call) {
  const Bytes out = tensor_bytes(call.rows, call.width);
  Node gate = call.input, up = call.up;
  if (up < 0) {
    ctx.graph.no_fan_in(call.input);
    up =
        pointwise(ctx, {.name = "up_view", .module = call.module, .inputs = {call.input}, .output = out, .view = true});
    gate = pointwise(ctx,
                     {.name = "gate_view", .module = call.module, .inputs = {call.input}, .output = out, .view = true});
  }
  const std::int64_t elements = call.rows * call.width;
  // Backward of views also joins the two halves' gradients (4 B per element of each).
  const double join = call.up < 0 ? 8 : 0;
  const Node silu = pointwise(ctx, {.name = "silu",
                                    .module = call.module,
                                    .inputs = {gate},
                                    .output = out,
                                    .elements = elements,
                                    .forward = 4,
                                    .backward = 6 + join,
                                    .backward_launches = call.up < 0 ? 2 : 1,
                                    .lane = call.lane});
  ctx.graph.keep(call.input, silu, call.kept);
  const Node product = pointwise(ctx, {.name = "silu_mul",
                                       .module = call.module,
                                       .inputs = {silu, up},
                                       .output = out,
                                       .elements = elements,
                                       .forward = 6,
                                       .backward = 12,
                                       .backward_launches = 2,
                                       .lane = call.lane,
                                       .product = true});
  ctx.graph.keep(silu, product, "ffn.silu");
  if (call.up >= 0) ctx.graph.keep(call.up, product, "ffn.up_half");
  return product;
}

}  // namespace

Node activation(LayerContext& ctx, const ActivationCall& call) {
  if (call.kind == Activation::swiglu && ctx.eager()) return eager_swiglu(ctx, call);
  const ActivationCost cost = cost_of(call.kind, ctx.eager());
  Pointwise p;
  p.name = cost.name;
  p.module = call.module;
  p.inputs = {call.input};
  p.output = tensor_bytes(call.rows, call.width);
  p.elements = call.rows * call.width;
  p.forward = cost.forward;
  p.backward = cost.backward;
  p.lane = call.lane;
  if (call.weights >= 0) p.inputs.push_back(call.weights);
  const Node self = pointwise(ctx, p);
  ctx.graph.keep(call.input, self, call.kept);
  return self;
}

Node dense_ffn_block(LayerContext& ctx, const FfnSpec& f, Node normed) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden, width = per_rank(f.intermediate, ctx.split.tp);
  const Node entered = tp_enter(ctx, normed, h, Module::ffn_up);
  auto project = [&](const char* name, std::int64_t n, bool first) {
    return linear(ctx, {.name = name,
                        .kept = "ffn.x",
                        .module = Module::ffn_up,
                        .input = entered,
                        .kept_input = normed,
                        .m = t,
                        .n = n,
                        .k = h,
                        .quantize_input = first,
                        .regather = first,
                        .bias = f.bias});
  };
  ActivationCall call{.kind = f.activation, .kept = "ffn.up", .module = Module::activation, .rows = t, .width = width};
  if (f.activation == Activation::swiglu && ctx.eager()) {
    call.input = project("ffn_gate", width, true);
    call.up = project("ffn_up", width, false);
  } else {
    call.input = project("ffn_up", is_gated(f.activation) ? 2 * width : width, true);
  }
  const Node act = activation(ctx, call);
  return closing_projection(
      ctx,
      {.name = "ffn_down", .kept = "ffn.act", .module = Module::ffn_down, .input = act, .k = width, .bias = f.bias});
}

}  // namespace k3sim
