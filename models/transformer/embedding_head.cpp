// Token embedding, output head with loss, and multi-token prediction.
//
// Embedding: gather of rows (vocabulary split over tp, then reduce-scatter or all-reduce of the partial rows).
// Head: final norm (after the AttnRes output mix), logits GEMM over vocab/tp, cross-entropy with FP32 logits; under tp
// the row maximum, the target logit and the sum of exponentials are all-reduced (4 B per token each).
// Kept by the head: norm input, GEMM input, FP32 probabilities (4 s b (h + v/t) bytes, arXiv:2205.05198 section 4.3).
// MTP: two norms, a 2h -> h projection of (hidden, next token's embedding), one more layer, the shared head again.
// Source: k3-facts section 1.2; Megatron-LM core/tensor_parallel/cross_entropy.py; DeepSeek-V3 report section 2.2.
#include "models/transformer/layers.h"
#include "models/transformer/parts.h"
#include "sim/base/check.h"

namespace k3sim {
namespace {

CommOp tp_reduce(CommKind kind, Bytes bytes) {
  CommOp op;
  op.kind = kind;
  op.group = GroupKind::tp;
  op.bytes = bytes;
  return op;
}

Node embed(LayerContext& ctx, Node tokens) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden;
  const Bytes rows = tensor_bytes(t, h);
  const bool split = ctx.split.tp > 1, scatter = split && ctx.split.sequence_parallel;
  Operation op;
  op.module = Module::embedding;
  op.inputs = {tokens};
  op.output = tensor_bytes(ctx.shard_tokens(), h);
  op.forward = {compute_step(memory_kernel("embedding", Pass::forward, MemoryClass::gather, rows * 2))};
  if (ctx.model.learned_positions) {
    op.forward.push_back(compute_step(memory_kernel("position_add", Pass::forward, MemoryClass::add, rows * 3)));
  }
  if (split) {
    op.forward.push_back(comm_step(scatter ? "tp_reduce_scatter" : "tp_all_reduce", Lane::tp_comm,
                                   tp_reduce(scatter ? CommKind::reduce_scatter : CommKind::all_reduce, rows)));
  }
  if (scatter) {
    op.backward.push_back(comm_step("tp_all_gather", Lane::tp_comm, tp_reduce(CommKind::all_gather, rows)));
  }
  // Adds each row's gradient into the table: reads the gradient, reads and writes the row.
  op.backward.push_back(compute_step(memory_kernel("embedding", Pass::weight_grad, MemoryClass::gather, rows * 3)));
  Node self = ctx.graph.add(std::move(op));
  if (!ctx.split.dropout) return self;
  const std::int64_t elements = ctx.shard_tokens() * h;
  self = pointwise(ctx, {.name = "embedding_dropout",
                         .module = Module::embedding,
                         .inputs = {self},
                         .output = Bytes(2 * elements),
                         .elements = elements,
                         .forward = 5,
                         .backward = 5});
  ctx.graph.keep_extra(self, "embedding.dropout_mask", Bytes(elements), Dtype::fp8, false);
  return self;
}

// Cross-entropy over vocab/tp logits: FP32 copy, maximum, exponentials and their sum, loss; then the logit gradient.
Node cross_entropy(LayerContext& ctx, Node logits) {
  const std::int64_t v = per_rank(ctx.model.vocab, ctx.split.tp), elements = ctx.tokens() * v;
  // Bytes per logit: eager: cast 6, log-softmax 8, loss; fused (one pass in, exponentials out): 2 + 4.
  const double forward = ctx.split.fusion == 0 ? 14.0 : ctx.split.fusion == 1 ? 22.0 : 8.0;
  const double backward = ctx.split.fusion == 0 ? 18.0 : ctx.split.fusion == 1 ? 14.0 : 6.0;
  Operation op;
  op.module = Module::head;
  op.inputs = {logits};
  op.output = Bytes(4 * ctx.tokens());
  Kernel fwd = memory_kernel("cross_entropy", Pass::forward, MemoryClass::softmax,
                             Bytes::ceil(forward * static_cast<double>(elements)));
  fwd.launches = ctx.split.fusion >= 2 ? 2 : 6;
  Kernel bwd = memory_kernel("cross_entropy", Pass::input_grad, MemoryClass::softmax,
                             Bytes::ceil(backward * static_cast<double>(elements)));
  bwd.launches = ctx.split.fusion >= 2 ? 1 : 3;
  op.forward = {compute_step(fwd)};
  if (ctx.split.tp > 1) {
    op.forward.push_back(
        comm_step("tp_loss_reduce", Lane::tp_comm, tp_reduce(CommKind::all_reduce, Bytes(3 * 4 * ctx.tokens()))));
  }
  op.backward = {compute_step(bwd)};
  // PyTorch: FP32 copy, with loss_parallel also the shifted logits and their exponentials; backward makes the gradient
  // of the log-probabilities and of the logits in FP32 (with loss_parallel once more the exponentials).
  const std::int64_t copies = ctx.split.torch_loss ? (ctx.split.tp > 1 ? 3 : 2) : 1;
  op.forward_scratch = Bytes(4 * elements * (ctx.split.torch_loss && ctx.split.tp > 1 ? 3 : 1));
  if (ctx.split.fusion < 2) op.gradient_scratch = Bytes(4 * elements * copies);
  const bool compiled = ctx.split.compiled_loss;
  if (compiled) op.forward_scratch = op.gradient_scratch = Bytes(0);
  const Node self = ctx.graph.add(std::move(op));
  if (compiled)
    ctx.graph.keep(logits, self, "head.logits");
  else
    ctx.graph.keep_extra(self, "head.probabilities", Bytes(4 * elements), Dtype::fp32);
  return self;
}

Node head(LayerContext& ctx, Node hidden, bool mixed) {
  const ModelSpec& model = ctx.model;
  const std::int64_t h = model.hidden, shard = ctx.shard_tokens();
  Norm final{.name = "final_norm",
             .kept = "norm.head_input",
             .module = Module::head,
             .input = hidden,
             .rows = shard,
             .width = h};
  if (mixed && model.attnres_block > 0) {
    const auto layers = static_cast<std::int64_t>(model.layers.size());
    const std::int64_t sources = (layers + model.attnres_block - 1) / model.attnres_block + 1;
    final.input = attnres_mix(ctx, hidden, sources, "attnres.out_sum");
    final.rebuild = ctx.graph.bytes(hidden) * (sources + 1);
  }
  const Node normed = norm(ctx, final);
  const Node entered = tp_enter(ctx, normed, h, Module::head);
  const Node logits = linear(ctx, {.name = "lm_head",
                                   .kept = "head.x",
                                   .module = Module::head,
                                   .input = entered,
                                   .kept_input = normed,
                                   .m = ctx.tokens(),
                                   .n = per_rank(model.vocab, ctx.split.tp),
                                   .k = h,
                                   .regather = true,
                                   .high_precision = !ctx.split.fp8_head});
  return cross_entropy(ctx, logits);
}

}  // namespace

LayerProgram embedding_program(const ModelSpec& model, const SplitConfig& split) {
  LayerGraph graph;
  LayerContext ctx{model, split, graph};
  const Node tokens = graph.input(Bytes{0});
  LayerProgram program = graph.finish(embed(ctx, tokens));
  program.boundary = tensor_bytes(ctx.shard_tokens(), model.hidden);
  return program;
}

LayerProgram head_program(const ModelSpec& model, const SplitConfig& split) {
  LayerGraph graph;
  LayerContext ctx{model, split, graph};
  const Node hidden = graph.input(tensor_bytes(ctx.shard_tokens(), model.hidden));
  LayerProgram program = graph.finish(head(ctx, hidden, true));
  program.boundary = Bytes{0};
  return program;
}

LayerProgram mtp_program(const ModelSpec& model, const SplitConfig& split) {
  CS_CHECK(!model.layers.empty(), "model {} has no layers", model.name);
  ModelSpec plain = model;  // the MTP layer stands outside the AttnRes stack
  plain.attnres_block = 0;
  LayerGraph graph;
  LayerContext ctx{plain, split, graph};
  const std::int64_t h = model.hidden, shard = ctx.shard_tokens();
  const Node hidden = graph.input(tensor_bytes(shard, h));
  const Node embedded = embed(ctx, graph.input(Bytes{0}));
  const Node left =
      norm(ctx, {.name = "mtp_norm_hidden", .kept = "mtp.hidden", .input = hidden, .rows = shard, .width = h});
  const Node right =
      norm(ctx, {.name = "mtp_norm_embedding", .kept = "mtp.embedding", .input = embedded, .rows = shard, .width = h});
  const Node joined = pointwise(ctx, {.name = "mtp_concat",
                                      .module = Module::embedding,
                                      .cls = MemoryClass::copy,
                                      .inputs = {left, right},
                                      .output = tensor_bytes(shard, 2 * h),
                                      .elements = shard * 2 * h,
                                      .forward = 4,
                                      .backward = 4});
  const Node projected = linear(ctx, {.name = "mtp_proj",
                                      .kept = "mtp.joined",
                                      .module = Module::embedding,
                                      .input = joined,
                                      .m = shard,
                                      .n = h,
                                      .k = 2 * h});
  const std::size_t last = model.layers.size() - 1;
  const Node layer = decoder_layer(ctx, model.layers[last], last, projected);
  LayerProgram program = graph.finish(head(ctx, layer, false));
  program.boundary = Bytes{0};
  return program;
}

}  // namespace k3sim
