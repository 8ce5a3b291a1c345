// Shared building blocks of the layer programs; see parts.h.
// FP8: a linear layer quantises its input (row-wise and transposed copy, 4.1 B per element, hardware notes 5.4) and its
// output gradient; the weight copy is made once per step and belongs to the optimizer.
// Source: Megatron-LM core/tensor_parallel/layers.py, hardware notes section 5.4.
#include "models/transformer/parts.h"

#include <algorithm>

namespace k3sim {
namespace {

constexpr double kQuantizeBoth = 4.1;  // read BF16, write FP8 row-wise and transposed, with scales
constexpr double kRequantize = 2.06;   // read FP8, write it transposed with new scales
constexpr double kAddBytes = 6, kNormForward = 4, kNormBackward = 6;

Kernel pointwise_kernel(const Pointwise& p, Pass pass) {
  const bool forward = pass == Pass::forward;
  const double per_element = forward ? p.forward : p.backward;
  Kernel k = memory_kernel(p.name, pass, p.cls, Bytes::ceil(per_element * static_cast<double>(p.elements)));
  k.launches = forward ? p.forward_launches : p.backward_launches;
  return k;
}

Step quantize_step(const char* name, Pass pass, std::int64_t elements, Lane lane, double bytes = kQuantizeBoth,
                   MemoryClass cls = MemoryClass::quantize, std::int32_t launches = 1) {
  Kernel k = memory_kernel(name, pass, cls, Bytes::ceil(bytes * static_cast<double>(elements)));
  k.launches = launches;
  return compute_step(k, lane);
}

// TransformerEngine casts the rows of its experts one expert after the other; one scale per tensor takes a kernel for
// the largest value, one for the scale and the cast.
std::int32_t casts(const LayerContext& ctx, const Linear& l, Dtype dtype) {
  if (!ctx.split.multi_stream_experts || l.groups <= 1) return 1;
  return static_cast<std::int32_t>(l.groups) * (dtype == Dtype::fp8 ? 3 : 1);
}

// One scale per tensor, and MX blocks along both axes, are cast and transposed in one streaming pass (a Triton kernel
// on H200: 3.6 to 3.8 TB/s, 6 to 8 % slower than the copy curve; calibrate/measurements/h200_cast.csv); tiles of 1 x
// 128 take a kernel of their own (measured as `quantize`).
MemoryClass quantize_class(Dtype dtype) {
  return dtype == Dtype::fp8_block ? MemoryClass::quantize : MemoryClass::copy;
}

// Elements that one rank quantises of a tensor that is gathered over tp afterwards.
std::int64_t quantized_elements(const LayerContext& ctx, std::int64_t elements, bool gathered) {
  return gathered && ctx.split.fp8_gather ? elements / ctx.split.tp : elements;
}

Bytes gathered_bytes(const LayerContext& ctx, Bytes bf16, bool linear_input) {
  return ctx.split.fp8_gather && linear_input ? Bytes((bf16.count() + 1) / 2) : bf16;
}

void add_requantizing(const Linear& l, Operation& op) {
  if (l.fp8_input)
    op.backward.push_back(quantize_step("requantize_input", Pass::weight_grad, l.m * l.k, l.lane, kRequantize));
  if (l.fp8_gradient)
    op.backward.push_back(quantize_step("requantize_grad", Pass::weight_grad, l.m * l.n, l.lane, kRequantize));
}

// Quantisation-aware training on hardware without MX products: values are rounded to the MX grid and back to BF16
// (2 B read, 2 B written), weights before every product because their rounded copy is not kept; gradients pass through
// unchanged (straight-through estimator). The rounded input is kept as MXFP8, (1 + 1/32) B per value, without loss.
constexpr double kRoundBytes = 4, kMxfp8Bytes = 1 + 1.0 / 32;
struct Rounding {
  bool on = false;
  std::int64_t weights = 0, inputs = 0;  // values
};

Rounding rounding_of(const LayerContext& ctx, const Linear& l) {
  return {ctx.split.qat && l.groups > 0, l.groups * l.n * l.k, l.m * l.k};
}

Step rounding_step(const char* name, Pass pass, std::int64_t values, double bytes) {
  return compute_step(
      memory_kernel(name, pass, MemoryClass::quantize, Bytes::ceil(bytes * static_cast<double>(values))));
}

Step tp_step(const char* name, CommKind kind, Bytes bytes) {
  CommOp op;
  op.kind = kind;
  op.group = GroupKind::tp;
  op.bytes = bytes;
  return comm_step(name, Lane::tp_comm, op);
}

Kernel product(const LayerContext& ctx, const Linear& l, Pass pass, Dtype dtype) {
  Kernel k = l.groups > 0 ? grouped_gemm_kernel(l.name, pass, dtype, l.groups, l.m, l.n, l.k)
                          : gemm_kernel(l.name, pass, dtype, l.m, l.n, l.k);
  k.choose_tile = l.choose_tile;
  if (ctx.split.multi_stream_experts && l.groups > 1) k.launches = static_cast<std::int32_t>(l.groups);
  if (pass == Pass::weight_grad) k.accumulated = ctx.split.accumulated;
  return k;
}

Step accumulate_step(Bytes gradient, Lane lane) {
  return compute_step(memory_kernel("weight_grad_accumulate", Pass::weight_grad, MemoryClass::add, gradient * 3), lane);
}

Step bias_step(const Linear& l, Pass pass) {
  const double bytes = pass == Pass::forward ? 4.0 : 2.0;  // add in place; column sum of the output gradient
  const auto elements = static_cast<double>(l.m * l.n);
  return compute_step(memory_kernel(pass == Pass::forward ? "bias_add" : "bias_grad", pass, MemoryClass::add,
                                    Bytes::ceil(bytes * elements)),
                      l.lane);
}

}  // namespace

Operation memory_operation(Module module, const std::vector<Node>& inputs, Bytes output) {
  Operation op;
  op.module = module;
  op.inputs = inputs;
  op.output = output;
  return op;
}

Step memory_step(const char* name, Pass pass, MemoryClass cls, double bytes, int launches) {
  Kernel k = memory_kernel(name, pass, cls, Bytes::ceil(bytes));
  k.launches = launches;
  return compute_step(k);
}

Node pointwise(LayerContext& ctx, const Pointwise& p) {
  Operation op;
  op.module = p.module;
  op.inputs = p.inputs;
  op.output = p.output;
  op.view = p.view;
  if (p.product)
    for (int i = static_cast<int>(p.inputs.size()); i-- > 0;) op.backward_script.result(i);
  if (p.forward > 0) op.forward = {compute_step(pointwise_kernel(p, Pass::forward), p.lane)};
  if (p.backward > 0) op.backward = {compute_step(pointwise_kernel(p, Pass::input_grad), p.lane)};
  return ctx.graph.add(std::move(op));
}

Node linear(LayerContext& ctx, const Linear& l) {
  const SplitConfig& split = ctx.split;
  const Dtype dtype = l.high_precision ? Dtype::bf16 : split.linear_dtype;
  Operation op;
  op.module = l.module;
  op.inputs = {l.input};
  op.output = tensor_bytes(l.m, l.n);
  if (l.run_after >= 0) op.forward_order = {l.run_after};
  if (is_fp8(dtype) && l.quantize_input && !l.fp8_input) {
    const std::int64_t own = quantized_elements(ctx, l.m * l.k, l.regather);
    op.forward.push_back(quantize_step("quantize_input", Pass::forward, own, l.lane, kQuantizeBoth,
                                       quantize_class(dtype), casts(ctx, l, dtype)));
  }
  const Rounding rounding = rounding_of(ctx, l);
  const bool narrow_input = rounding.on && !is_fp8(dtype);
  if (narrow_input) op.forward.push_back(rounding_step("qat_round_input", Pass::forward, rounding.inputs, kRoundBytes));
  if (rounding.on) {
    op.forward.push_back(rounding_step("qat_round_weight", Pass::forward, rounding.weights, kRoundBytes));
    op.forward_scratch = op.gradient_scratch = Bytes(2 * rounding.weights);
  }
  op.forward.push_back(compute_step(product(ctx, l, Pass::forward, dtype), l.lane));
  // A GEMM epilogue adds the bias unless the stack is eager.
  if (l.bias && ctx.eager()) op.forward.push_back(bias_step(l, Pass::forward));
  if (l.regather && split.tp > 1 && split.sequence_parallel && !split.keeps_gathered) {
    Step again =
        tp_step("tp_regather", CommKind::all_gather, gathered_bytes(ctx, tensor_bytes(l.m, l.k), is_fp8(dtype)));
    again.detached = true;
    op.backward.push_back(again);
  }
  if (is_fp8(dtype) && !l.fp8_gradient) {
    const std::int64_t own = quantized_elements(ctx, l.m * l.n, l.gathered_gradient);
    op.backward.push_back(quantize_step("quantize_grad", Pass::input_grad, own, l.lane, kQuantizeBoth,
                                        quantize_class(dtype), casts(ctx, l, dtype)));
  }
  if (rounding.on)
    op.backward.push_back(rounding_step("qat_round_weight", Pass::input_grad, rounding.weights, kRoundBytes));
  op.backward.push_back(compute_step(product(ctx, l, Pass::input_grad, dtype), l.lane));
  if (is_fp8(dtype)) add_requantizing(l, op);
  if (narrow_input)
    op.backward.push_back(rounding_step("qat_restore_input", Pass::weight_grad, rounding.inputs, kMxfp8Bytes + 2));
  op.backward.push_back(compute_step(product(ctx, l, Pass::weight_grad, dtype), l.lane));
  if (l.bias) op.backward.push_back(bias_step(l, Pass::weight_grad));
  // Autograd makes the weight gradient as a new tensor before it is added; fused stacks accumulate in the GEMM.
  if (ctx.eager()) {
    op.weight_gradient = Bytes(2 * l.n * l.k * std::max<std::int64_t>(1, l.groups));
    if (ctx.accumulate) op.backward.push_back(accumulate_step(op.weight_gradient, l.lane));
  }
  const Node self = ctx.graph.add(std::move(op));
  const Node kept = l.kept_input >= 0 && !split.keeps_gathered ? l.kept_input : l.input;
  const double ratio = is_fp8(dtype) ? 0.5 : narrow_input ? kMxfp8Bytes / 2 : 1.0;
  ctx.graph.keep(kept, self, l.kept, is_fp8(dtype) ? dtype : narrow_input ? Dtype::mxfp8 : Dtype::bf16, ratio);
  return self;
}

Node tp_enter(LayerContext& ctx, Node x, std::int64_t width, Module module) {
  if (ctx.split.tp == 1) return x;
  const Bytes full = tensor_bytes(ctx.tokens(), width);
  Operation op;
  op.module = module;
  op.inputs = {x};
  op.output = full;
  if (ctx.split.sequence_parallel) {
    const bool linear_input = module != Module::head || ctx.split.fp8_head;
    op.forward = {tp_step("tp_all_gather", CommKind::all_gather, gathered_bytes(ctx, full, linear_input))};
    op.backward = {tp_step("tp_reduce_scatter", CommKind::reduce_scatter, full)};
  } else {
    op.backward = {tp_step("tp_all_reduce", CommKind::all_reduce, full)};
  }
  return ctx.graph.add(std::move(op));
}

Node tp_exit(LayerContext& ctx, Node x, std::int64_t width, Module module) {
  if (ctx.split.tp == 1) return x;
  const Bytes full = tensor_bytes(ctx.tokens(), width);
  Operation op;
  op.module = module;
  op.inputs = {x};
  op.output = tensor_bytes(ctx.shard_tokens(), width);
  if (ctx.split.sequence_parallel) {
    op.forward = {tp_step("tp_reduce_scatter", CommKind::reduce_scatter, full)};
    op.backward = {tp_step("tp_all_gather", CommKind::all_gather, gathered_bytes(ctx, full, true))};
  } else {
    op.forward = {tp_step("tp_all_reduce", CommKind::all_reduce, full)};
  }
  return ctx.graph.add(std::move(op));
}

Node closing_projection(LayerContext& ctx, Linear l) {
  l.m = ctx.tokens();
  l.n = ctx.model.hidden;
  l.gathered_gradient = true;
  return tp_exit(ctx, linear(ctx, l), l.n, l.module);
}

Node norm(LayerContext& ctx, const Norm& n) {
  const bool fused = ctx.split.fusion >= 2 && n.after_residual;
  const auto elements = static_cast<double>(n.rows * n.width);
  // Fused into the residual add, the norm only writes its result and its backward also sums the residual gradient.
  Kernel forward = memory_kernel(n.name, Pass::forward, MemoryClass::norm,
                                 Bytes::ceil(elements * (fused ? kNormForward / 2 : kNormForward)));
  Kernel backward = memory_kernel(n.name, Pass::input_grad, MemoryClass::norm,
                                  Bytes::ceil(elements * (fused ? kNormBackward + 2 : kNormBackward)));
  forward.launches = fused ? 0 : 1;
  backward.launches = 2;
  Operation op;
  op.module = n.module;
  op.inputs = {n.input};
  op.output = tensor_bytes(n.rows, n.width);
  op.forward = {compute_step(forward)};
  const bool rebuilt = n.rebuild.count() > 0;
  if (rebuilt) {
    op.backward = {compute_step(memory_kernel("attnres_remix", Pass::input_grad, MemoryClass::mix, n.rebuild))};
    op.gradient_scratch = op.output;
  }
  op.backward.push_back(compute_step(backward));
  const Node self = ctx.graph.add(std::move(op));
  if (!rebuilt) ctx.graph.keep(n.input, self, n.kept);
  return self;
}

Node residual_add(LayerContext& ctx, Node residual, Node branch, const char* mask_name) {
  const Bytes row_bytes = ctx.graph.bytes(residual);
  const std::int64_t elements = row_bytes.count() / 2;
  const bool drop = ctx.split.dropout, fused = !ctx.eager();
  Operation op;
  op.module = Module::residual;
  op.output = row_bytes;
  op.inputs = {residual, branch};
  op.shares_gradient = !drop;
  op.gradient_fan_in = ctx.split.fusion < 2;
  const double forward = kAddBytes + (drop ? (fused ? 1 : 5) : 0);
  Kernel k = memory_kernel(drop ? "bias_dropout_add" : "residual_add", Pass::forward, MemoryClass::add,
                           Bytes::ceil(forward * static_cast<double>(elements)));
  k.launches = drop && !fused ? 2 : 1;
  op.forward = {compute_step(k)};
  if (drop) {
    op.backward = {
        compute_step(memory_kernel("dropout_grad", Pass::input_grad, MemoryClass::activation, Bytes(5 * elements)))};
  }
  const Node self = ctx.graph.add(std::move(op));
  if (drop) ctx.graph.keep_extra(self, mask_name, Bytes(elements), Dtype::fp8, false);
  return self;
}

Node exchange(LayerContext& ctx, const Exchange& e) {
  Operation op;
  op.module = e.module;
  op.inputs = {e.input};
  op.output = e.output;
  op.forward = {comm_step(e.forward_name, e.lane, e.forward)};
  op.backward = {comm_step(e.backward_name, e.lane, e.backward)};
  return ctx.graph.add(std::move(op));
}

}  // namespace k3sim
