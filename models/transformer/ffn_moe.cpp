// Mixture of experts and LatentMoE: FP32 router, permutation, dispatch, grouped expert GEMMs, combine, shared experts.
//
// Rows: a rank holds tokens / tp tokens (sequence shard), sends top-k rows of each, and with balanced routing its
// experts compute as many rows (times etp, because expert-tensor-parallel ranks gather each other's rows). Shared
// experts run on the side lane (k3-facts 2.2): gate + up + activation (SE1) beside dispatch, down (SE2) beside combine;
// in backward SE2 beside combine-backward and SE1 after the routed experts, beside dispatch-backward. An eager stack
// (fusion 0) writes them after the routed path, as the measured modules do. Routing weight: eager stacks multiply it
// into the expert output and keep that output; fused stacks multiply it into the activation (or rewrite the weight's
// gradient, K3) and do not keep the expert output. Source: k3-facts sections 1.2, 2.2, 2.4; Megatron-LM
// core/transformer/moe; measurements README (module construction).
#include <cmath>

#include <algorithm>

#include "models/transformer/parts.h"
#include "sim/base/check.h"

namespace k3sim {
namespace {

struct MoeShape {
  std::int64_t tokens, rows, local_rows, width, local_experts, inter;
};

MoeShape shape_of(const LayerContext& ctx, const FfnSpec& f) {
  const SplitConfig& s = ctx.split;
  MoeShape m{};
  m.tokens = s.tokens / s.tp;  // without sequence parallelism each tensor rank takes its slice of the tokens
  m.rows = m.tokens * f.topk;
  if (s.capacity_factor > 0) m.rows = static_cast<std::int64_t>(s.capacity_factor * static_cast<double>(m.rows) + 0.5);
  m.local_rows = s.expert_rows > 0
                     ? s.expert_rows
                     : static_cast<std::int64_t>(std::ceil(static_cast<double>(m.rows * s.etp) * s.expert_row_ratio));
  m.width = f.latent > 0 ? f.latent : ctx.model.hidden;
  m.local_experts = std::max<std::int64_t>(1, f.experts / s.ep);
  m.inter = per_rank(f.expert_intermediate, s.etp);
  return m;
}

Operation memory_operation(Module module, const std::vector<Node>& inputs, Bytes output) {
  Operation op;
  op.module = module;
  op.inputs = inputs;
  op.output = output;
  return op;
}

Step memory_step(const char* name, Pass pass, MemoryClass cls, double bytes, int launches = 1) {
  Kernel k = memory_kernel(name, pass, cls, Bytes::ceil(bytes));
  k.launches = launches;
  return compute_step(k);
}

// Logits and scores in FP32, selection, normalised weights. The output is the [tokens, topk] weight in FP32.
Node router(LayerContext& ctx, const FfnSpec& f, Node normed, const MoeShape& m) {
  const auto t = static_cast<double>(m.tokens), h = static_cast<double>(ctx.model.hidden);
  const auto scores = t * static_cast<double>(f.experts), chosen = t * static_cast<double>(f.topk);
  Operation op = memory_operation(Module::router, {normed}, Bytes(4 * m.tokens * f.topk));
  const Kernel logits = gemm_kernel("router", Pass::forward, Dtype::fp32, m.tokens, f.experts, ctx.model.hidden);
  Kernel select;
  select.family = KernelFamily::topk;
  select.dtype = Dtype::fp32;
  select.name = "router_topk";
  select.m = m.tokens;
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
  if (ctx.eager()) op.gradient_scratch = tensor_bytes(m.tokens, ctx.model.hidden, 4);
  const Node self = ctx.graph.add(std::move(op));
  if (ctx.eager())
    ctx.graph.keep_extra(self, "moe.x_fp32", tensor_bytes(m.tokens, ctx.model.hidden, 4), Dtype::fp32);
  else
    ctx.graph.keep(normed, self, "moe.x");
  ctx.graph.keep_extra(self, "moe.scores", tensor_bytes(m.tokens, f.experts, 4), Dtype::fp32);
  // Chosen indices and the two orders that permute and restore rows (int64), weights before and after normalisation.
  ctx.graph.keep_extra(self, "moe.routing", Bytes(m.tokens * f.topk * (3 * 8 + 2 * 4)), Dtype::fp32);
  return self;
}

// Traffic of adding rows onto others: fused kernels read and write each value once; PyTorch's index_add does one atomic
// per BF16 value, each moving a 32-byte L2 sector.
double scatter_bytes(const LayerContext& ctx, std::int64_t rows, std::int64_t width) {
  return (ctx.eager() ? 2.0 + 32.0 : 4.0) * static_cast<double>(rows * width);
}

Node gather_rows(LayerContext& ctx, const char* name, const char* back, Module module, Node input, std::int64_t rows,
                 std::int64_t width) {
  Operation op = memory_operation(module, {input}, tensor_bytes(rows, width));
  op.forward = {memory_step(name, Pass::forward, MemoryClass::gather, 4.0 * static_cast<double>(rows * width))};
  op.backward = {memory_step(back, Pass::input_grad, MemoryClass::gather, scatter_bytes(ctx, rows, width))};
  return ctx.graph.add(std::move(op));
}

CommOp token_exchange(const LayerContext& ctx, const FfnSpec& f, const MoeShape& m, bool dispatching) {
  CommOp op;
  op.group = GroupKind::ep;
  op.tokens = m.tokens;
  op.topk = f.topk;
  op.experts = f.experts;
  op.row_bytes = m.width * 2;
  if (ctx.split.dispatcher == "allgather") {
    op.kind = dispatching ? CommKind::all_gather : CommKind::reduce_scatter;
    op.bytes = Bytes(m.tokens * op.row_bytes * ctx.split.ep);
    return op;
  }
  op.kind = dispatching ? CommKind::dispatch : CommKind::combine;
  op.bytes = Bytes(m.rows * op.row_bytes);
  return op;
}

Node etp_exchange(LayerContext& ctx, const MoeShape& m, Node rows, bool gather) {
  if (ctx.split.etp == 1) return rows;
  CommOp all;
  all.kind = CommKind::all_gather;
  all.group = GroupKind::etp;
  all.bytes = tensor_bytes(m.local_rows, m.width);
  CommOp scatter = all;
  scatter.kind = CommKind::reduce_scatter;
  return exchange(ctx, {.forward_name = gather ? "etp_all_gather" : "etp_reduce_scatter",
                        .backward_name = gather ? "etp_reduce_scatter" : "etp_all_gather",
                        .lane = Lane::ep_comm,
                        .module = gather ? Module::dispatch : Module::combine,
                        .input = rows,
                        .output = gather ? all.bytes : tensor_bytes(m.rows, m.width),
                        .forward = gather ? all : scatter,
                        .backward = gather ? scatter : all});
}

// Permutation by destination, transport, and (with the all-to-all dispatcher) a second sort by local expert.
Node dispatch(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node latent) {
  const bool transported = ctx.split.ep > 1, alltoall = ctx.split.dispatcher == "alltoall";
  Node rows = latent;
  if (!transported || alltoall) {
    rows = gather_rows(ctx, "moe_permute", "moe_permute_grad", Module::dispatch, rows, m.rows, m.width);
    if (!ctx.eager() && f.latent > 0) ctx.graph.keep(latent, rows, "moe.latent");
  }
  if (transported) {
    rows = exchange(ctx, {.forward_name = "ep_dispatch",
                          .backward_name = "ep_dispatch_grad",
                          .lane = Lane::ep_comm,
                          .module = Module::dispatch,
                          .input = rows,
                          .output = tensor_bytes(m.rows, m.width),
                          .forward = token_exchange(ctx, f, m, true),
                          .backward = token_exchange(ctx, f, m, false)});
    if (!ctx.eager() && f.latent > 0) ctx.graph.keep(latent, rows, "moe.latent");
  }
  rows = etp_exchange(ctx, m, rows, true);
  const bool sort_here = transported && ctx.split.dispatcher != "moonep" && m.local_experts > 1;
  if (!sort_here) return rows;
  return gather_rows(ctx, "moe_sort_rows", "moe_sort_rows_grad", Module::dispatch, rows, m.local_rows, m.width);
}

Node weighted_rows(LayerContext& ctx, Node rows, Node weights, const MoeShape& m) {
  const auto elements = static_cast<double>(m.local_rows * m.width);
  Operation op = memory_operation(Module::combine, {rows, weights}, tensor_bytes(m.local_rows, m.width));
  // PyTorch's broadcast product runs unvectorised: 602 us for 4 bytes of 235 M values on an H200, 1.56 TB/s, and 1026
  // us for the row gradients, the product and its row sums (eager pieces profiled 2026-11-29).
  const double forward = ctx.eager() ? 11.2 : 4.0, backward = ctx.eager() ? 19.7 : 12.0;
  op.forward = {memory_step("moe_weight_rows", Pass::forward, MemoryClass::activation, forward * elements)};
  op.backward = {
      memory_step("moe_weight_rows_grad", Pass::input_grad, MemoryClass::activation, backward * elements, 3)};
  op.gradient_scratch = tensor_bytes(m.local_rows, m.width);
  const Node self = ctx.graph.add(std::move(op));
  ctx.graph.keep(rows, self, "moe.expert_out");
  return self;
}

Node combine(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node rows) {
  const bool transported = ctx.split.ep > 1, alltoall = ctx.split.dispatcher == "alltoall";
  if (transported && ctx.split.dispatcher != "moonep" && m.local_experts > 1) {
    rows = gather_rows(ctx, "moe_unsort_rows", "moe_unsort_rows_grad", Module::combine, rows, m.local_rows, m.width);
  }
  rows = etp_exchange(ctx, m, rows, false);
  const bool reduced = transported && !alltoall;  // the transport itself sums a token's rows
  if (transported) {
    rows = exchange(ctx, {.forward_name = "ep_combine",
                          .backward_name = "ep_combine_grad",
                          .lane = Lane::ep_comm,
                          .module = Module::combine,
                          .input = rows,
                          .output = tensor_bytes(reduced ? m.tokens : m.rows, m.width),
                          .forward = token_exchange(ctx, f, m, false),
                          .backward = token_exchange(ctx, f, m, true)});
  }
  if (reduced) return rows;
  Operation op = memory_operation(Module::combine, {rows}, tensor_bytes(m.tokens, m.width));
  op.forward = {memory_step("moe_unpermute", Pass::forward, MemoryClass::gather, scatter_bytes(ctx, m.rows, m.width))};
  op.backward = {memory_step("moe_unpermute_grad", Pass::input_grad, MemoryClass::gather,
                             4.0 * static_cast<double>(m.rows * m.width))};
  const Node self = ctx.graph.add(std::move(op));
  if (ctx.eager()) ctx.graph.keep(rows, self, "moe.weighted");  // PyTorch's index_add keeps its source
  return self;
}

struct SharedPath {
  Node entered = -1, activated = -1;
};

SharedPath shared_first(LayerContext& ctx, const FfnSpec& f, Node normed) {
  const std::int64_t t = ctx.tokens(), h = ctx.model.hidden, width = per_rank(f.shared_intermediate, ctx.split.tp);
  SharedPath path;
  path.entered = tp_enter(ctx, normed, h, Module::shared_up);
  const Node up = linear(ctx, {.name = "shared_up",
                               .kept = "moe.x_bf16",
                               .module = Module::shared_up,
                               .input = path.entered,
                               .kept_input = normed,
                               .m = t,
                               .n = is_gated(f.activation) ? 2 * width : width,
                               .k = h,
                               .quantize_input = false,
                               .regather = true,
                               .lane = Lane::side});
  path.activated = activation(ctx, {.kind = f.activation,
                                    .kept = "moe.shared_up",
                                    .module = Module::shared_activation,
                                    .input = up,
                                    .rows = t,
                                    .width = width,
                                    .lane = Lane::side});
  return path;
}

Node shared_second(LayerContext& ctx, const FfnSpec& f, const SharedPath& path, Node run_after) {
  return closing_projection(ctx, {.name = "shared_down",
                                  .kept = "moe.shared_act",
                                  .module = Module::shared_down,
                                  .input = path.activated,
                                  .k = per_rank(f.shared_intermediate, ctx.split.tp),
                                  .lane = Lane::side,
                                  .run_after = run_after});
}

struct ExpertPath {
  Node up, down;
};

ExpertPath experts(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node rows, Node weights) {
  const Node up = linear(ctx, {.name = "expert_up",
                               .kept = "moe.dispatched",
                               .module = Module::expert_up,
                               .input = rows,
                               .m = m.local_rows,
                               .n = is_gated(f.activation) ? 2 * m.inter : m.inter,
                               .k = m.width,
                               .groups = m.local_experts});
  const Node act = activation(ctx, {.kind = f.activation,
                                    .kept = "moe.expert_up",
                                    .module = Module::expert_activation,
                                    .input = up,
                                    .rows = m.local_rows,
                                    .width = m.inter,
                                    .weights = ctx.eager() ? -1 : weights});
  const Node down = linear(ctx, {.name = "expert_down",
                                 .kept = "moe.expert_act",
                                 .module = Module::expert_down,
                                 .input = act,
                                 .m = m.local_rows,
                                 .n = m.width,
                                 .k = m.inter,
                                 .groups = m.local_experts});
  return {up, down};
}

Node latent_in(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node normed) {
  if (f.latent == 0) return normed;
  return linear(ctx, {.name = "latent_down",
                      .kept = "moe.x_bf16",
                      .module = Module::latent_proj,
                      .input = normed,
                      .m = m.tokens,
                      .n = f.latent,
                      .k = ctx.model.hidden});
}

Node latent_out(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node sum) {
  if (f.latent == 0) return sum;
  if (f.latent_norm) {
    sum = norm(ctx, {.name = "latent_norm",
                     .kept = "moe.latent_sum",
                     .module = Module::latent_proj,
                     .input = sum,
                     .rows = m.tokens,
                     .width = f.latent});
  }
  return linear(ctx, {.name = "latent_up",
                      .kept = "moe.latent_normed",
                      .module = Module::latent_proj,
                      .input = sum,
                      .m = m.tokens,
                      .n = ctx.model.hidden,
                      .k = f.latent});
}

}  // namespace

Node moe_block(LayerContext& ctx, const FfnSpec& f, Node normed) {
  const MoeShape m = shape_of(ctx, f);
  const bool shared = f.shared_intermediate > 0, beside = shared && !ctx.eager();
  const Node weights = router(ctx, f, normed, m);
  const Node rows = dispatch(ctx, f, m, latent_in(ctx, f, m, normed));
  SharedPath path;
  if (beside) path = shared_first(ctx, f, normed);
  const ExpertPath expert = experts(ctx, f, m, rows, weights);
  const Node weighted = ctx.eager() ? weighted_rows(ctx, expert.down, weights, m) : expert.down;
  const Node combined = combine(ctx, f, m, weighted);
  Node shared_out = -1;
  if (beside) {
    ctx.graph.order_backward(path.activated, expert.up);
    shared_out = shared_second(ctx, f, path, expert.down);
  }
  const Node out = latent_out(ctx, f, m, combined);
  if (!shared) return out;
  if (!beside) shared_out = shared_second(ctx, f, shared_first(ctx, f, normed), -1);
  Operation sum = memory_operation(Module::shared_down, {out, shared_out}, ctx.graph.bytes(out));
  sum.shares_gradient = true;
  sum.forward = {memory_step("shared_add", Pass::forward, MemoryClass::add, 3 * ctx.graph.bytes(out).as_double())};
  return ctx.graph.add(std::move(sum));
}

Node exchanged_experts_block(LayerContext& ctx, const FfnSpec& f, Node x) {
  const MoeShape m = shape_of(ctx, f);
  const Node latent = latent_in(ctx, f, m, x);
  const Node copies = gather_rows(ctx, "moe_copy_rows", "moe_sum_rows", Module::dispatch, latent, m.rows, m.width);
  CommOp all;
  all.kind = CommKind::all_to_all;
  all.group = GroupKind::ep;
  all.bytes = tensor_bytes(m.rows, m.width);
  auto transport = [&](const char* name, const char* back, Module module, Node rows) {
    return exchange(ctx, {.forward_name = name,
                          .backward_name = back,
                          .lane = Lane::ep_comm,
                          .module = module,
                          .input = rows,
                          .output = all.bytes,
                          .forward = all,
                          .backward = all});
  };
  const Node rows = transport("ep_all_to_all", "ep_all_to_all_grad", Module::dispatch, copies);
  const ExpertPath expert = experts(ctx, f, m, rows, -1);
  const Node back = transport("ep_all_to_all_back", "ep_all_to_all_back_grad", Module::combine, expert.down);
  const Node sum = pointwise(ctx, {.name = "moe_sum_rows",
                                   .module = Module::combine,
                                   .cls = MemoryClass::add,
                                   .inputs = {back},
                                   .output = tensor_bytes(m.tokens, m.width),
                                   .elements = m.rows * m.width,
                                   .forward = 2,
                                   .backward = 2});
  // Exchanges outside autograd cut it into three segments: their ends stay alive through backward, and so do the
  // gradients at the cuts (exchanged rows, expert outputs before and after the way back).
  ctx.graph.keep(copies, latent, "moe.sent");
  ctx.graph.keep(expert.down, latent, "moe.expert_out");
  ctx.graph.keep(back, latent, "moe.returned");
  ctx.graph.keep_extra(latent, "moe.segment_gradients", all.bytes * 3, Dtype::bf16, false);
  return latent_out(ctx, f, m, sum);
}

}  // namespace k3sim
