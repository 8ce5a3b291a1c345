// Block Attention Residuals: the mix of stored block rows and the running sum, and a decoder layer around it.
//
// For 0-based layer l, block size B, bank of stored rows (k3-facts 1.2): attention input = mix(bank, p) if the bank is
// not empty; if l mod B = 0 the running sum p joins the bank and is cleared; p += attention; FFN input = mix(bank, p);
// p += FFN. Sources of the attention mix: ceil(l/B) + 1 (no mix at l = 0); of the FFN mix: floor(l/B) + 2.
// Cost: n rows read and one written forward; n rows and the output gradient read and n row gradients written backward.
// The mix is checkpointed (unless the split says saved): only the running sum is kept, as in a plain residual, and
// backward mixes once more; bank rows belong to earlier layers. Source: k3-facts sections 1.2, 2.4, 2.5 (NeMo AutoModel
// kimi_k3 model code).
#include "models/transformer/parts.h"

namespace k3sim {

namespace {

// The mix as torch.compile splits it: scores (reads every row), weighted sum (reads them again); backward: score
// gradients, a pointwise pass that writes FP32 row gradients, one reduction over rows, gradients and output, and one
// accumulation per row. Counted from a kernel profile on an H200 (2026-11-29).
Node compiled_mix(LayerContext& ctx, Node running, std::int64_t n, const char* kept) {
  const Bytes row = ctx.graph.bytes(running);
  Operation op;
  op.module = Module::attnres;
  op.inputs = {running};
  op.output = row;
  // Generated reductions ran at 2.55 TB/s (416 us for nine rows of 8192 x 7168), a tenth below the library's norms.
  const auto step = [&](const char* name, Pass pass, MemoryClass cls, std::int64_t rows, std::int64_t launches) {
    const Bytes bytes = row * rows;
    Kernel k = memory_kernel(name, pass, cls, cls == MemoryClass::norm ? bytes + bytes.share(10) : bytes);
    k.launches = static_cast<std::int32_t>(launches);
    return compute_step(k);
  };
  op.forward = {step("attnres_scores", Pass::forward, MemoryClass::norm, n, 2),
                step("attnres_sum", Pass::forward, MemoryClass::norm, n + 1, 1)};
  op.backward = {step("attnres_score_grad", Pass::input_grad, MemoryClass::norm, n + 1, 2),
                 step("attnres_row_grad", Pass::input_grad, MemoryClass::add, 2 * n, 1),
                 step("attnres_norm_grad", Pass::input_grad, MemoryClass::norm, 4 * n + 1, 6),
                 step("attnres_accumulate", Pass::input_grad, MemoryClass::add, 3 * n, n)};
  op.gradient_scratch = row * (n - 1);
  const Node self = ctx.graph.add(std::move(op));
  ctx.graph.keep(running, self, kept);
  return self;
}

}  // namespace

Node attnres_mix(LayerContext& ctx, Node running, std::int64_t sources, const char* kept) {
  const Bytes row = ctx.graph.bytes(running);
  Operation op;
  op.module = Module::attnres;
  op.inputs = {running};
  op.output = row;
  if (ctx.eager()) return compiled_mix(ctx, running, sources, kept);
  Kernel forward = memory_kernel("attnres_mix", Pass::forward, MemoryClass::mix, row * (sources + 1));
  Kernel backward = memory_kernel("attnres_mix", Pass::input_grad, MemoryClass::mix, row * (2 * sources + 1));
  forward.n = backward.n = sources;
  op.forward = {compute_step(forward)};
  op.backward = {compute_step(backward)};
  if (ctx.split.fusion < 2 && sources > 1) {
    // Row gradients of the bank are summed over the mixes that read it.
    Kernel sum =
        memory_kernel("attnres_grad_accumulate", Pass::input_grad, MemoryClass::add, row * (3 * (sources - 1)));
    sum.launches = static_cast<std::int32_t>(sources - 1);
    op.backward.push_back(compute_step(sum));
  }
  op.gradient_scratch = row * (sources - 1);
  const Node self = ctx.graph.add(std::move(op));
  ctx.graph.keep(running, self, kept);
  return self;
}

namespace {

Node feed_forward(LayerContext& ctx, const FfnSpec& f, Node normed) {
  return f.is_moe() ? moe_block(ctx, f, normed) : dense_ffn_block(ctx, f, normed);
}

struct SublayerInput {
  Node running;
  std::int64_t sources;  // of the mix; 0: no mix, the running sum itself
  const char* norm_name;
  const char* norm_kept;
  const char* mix_kept;
};

// Norm of the sublayer's input, which is the running sum or a mix that backward rebuilds.
Node sublayer_input(LayerContext& ctx, const SublayerInput& in) {
  Norm n{.name = in.norm_name,
         .kept = in.norm_kept,
         .input = in.running,
         .rows = ctx.shard_tokens(),
         .width = ctx.model.hidden,
         .after_residual = in.sources == 0};
  if (in.sources > 0) {
    n.input = attnres_mix(ctx, in.running, in.sources, in.mix_kept);
    if (!ctx.split.attnres_saved) n.rebuild = ctx.graph.bytes(in.running) * (in.sources + 1);
  }
  return norm(ctx, n);
}

}  // namespace

Node decoder_layer(LayerContext& ctx, const LayerSpec& layer, std::size_t index, Node input) {
  const std::int64_t block = ctx.model.attnres_block, l = static_cast<std::int64_t>(index);
  const bool mixed = block > 0;
  const Node attention_normed = sublayer_input(ctx, {input, mixed && l > 0 ? (l + block - 1) / block + 1 : 0,
                                                     "attn_norm", "norm.attn_input", "attnres.attn_sum"});
  const Node attention = attention_block(ctx, layer.attention, attention_normed);
  const bool cleared = mixed && l % block == 0;  // the old sum moved into the bank
  const Node middle = cleared ? attention : residual_add(ctx, input, attention, "attn.hidden_dropout_mask");
  const Node ffn_normed =
      sublayer_input(ctx, {middle, mixed ? l / block + 2 : 0, "ffn_norm", "norm.ffn_input", "attnres.ffn_sum"});
  const Node ffn = feed_forward(ctx, layer.ffn, ffn_normed);
  return residual_add(ctx, middle, ffn, "ffn.hidden_dropout_mask");
}

}  // namespace k3sim
