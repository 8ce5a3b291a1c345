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

// Traffic of adding rows onto others: fused kernels read and write each value once; PyTorch's index_add does one atomic
// per BF16 value, each moving a 32-byte L2 sector. Megatron-Core without permute fusion selects rows (backward:
// index_add), multiplies them by their weights and scatter_adds them: 8.2, 6.6 and 5.5 ps per value for the first's
// backward and the second's two passes on an H200 (calibrate/measurements/h200_permute.csv), here in bytes of the
// gather curve.
constexpr double kSelectBackBytes = 41, kScatterBytes = 32, kScatterBackBytes = 27;
constexpr double kFusedBytes = 4, kAtomicBytes = 2 + 32;  // the latter of eager stacks
double moved_bytes(const LayerContext& ctx, std::int64_t rows, std::int64_t width, double eager, double unfused) {
  const double each = ctx.eager() ? eager : ctx.split.permute_fusion ? kFusedBytes : unfused;
  return each * static_cast<double>(rows * width);
}

constexpr double kFp8Rows = 2.06, kQuantizeRows = 3.03;  // bytes per value: FP8 rows moved; BF16 read, FP8 written

// fp8_forward, fp8_backward: these rows come in FP8 (their scales with them); chunks: whole runs of rows change places.
struct RowFormat {
  bool fp8_forward = false, fp8_backward = false, chunks = false;
};

Node gather_rows(LayerContext& ctx, const char* name, const char* back, Module module, Node input, std::int64_t rows,
                 std::int64_t width, RowFormat format = {}) {
  const auto values = static_cast<double>(rows * width);
  const double back_bytes = moved_bytes(ctx, rows, width, kAtomicBytes, format.chunks ? kFusedBytes : kSelectBackBytes);
  Operation op = memory_operation(module, {input}, tensor_bytes(rows, width));
  op.forward = {memory_step(name, Pass::forward, MemoryClass::gather, (format.fp8_forward ? kFp8Rows : 4.0) * values)};
  op.backward = {
      memory_step(back, Pass::input_grad, MemoryClass::gather, format.fp8_backward ? kFp8Rows * values : back_bytes)};
  return ctx.graph.add(std::move(op));
}

// Rows are quantised before they leave: activations forward, gradients of combined rows backward.
Node quantize_rows(LayerContext& ctx, Module module, Node x, const MoeShape& m, bool forward) {
  if (!ctx.split.fp8_dispatch) return x;
  return pointwise(ctx, {.name = forward ? "quantize_dispatch" : "quantize_combine_grad",
                         .module = module,
                         .cls = MemoryClass::quantize,
                         .inputs = {x},
                         .output = tensor_bytes(m.tokens, m.width),
                         .elements = m.tokens * m.width,
                         .forward = forward ? kQuantizeRows : 0,
                         .backward = forward ? 0 : kQuantizeRows});
}

CommOp token_exchange(const LayerContext& ctx, const FfnSpec& f, const MoeShape& m, bool dispatching,
                      bool saved_plan = false) {
  CommOp op;
  op.saved_plan = saved_plan;
  op.group = GroupKind::ep;
  op.tokens = m.tokens;
  op.topk = f.topk;
  op.experts = f.experts;
  op.groups = f.groups;
  op.groups_chosen = f.groups_chosen;
  op.row_bytes = dispatching && ctx.split.fp8_dispatch ? m.width + 4 * ((m.width + 127) / 128) : m.width * 2;
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
    rows = quantize_rows(ctx, Module::dispatch, rows, m, true);
    rows = exchange(ctx, {.forward_name = "ep_dispatch",
                          .backward_name = "ep_dispatch_grad",
                          .lane = Lane::ep_comm,
                          .module = Module::dispatch,
                          .input = rows,
                          .output = tensor_bytes(m.rows, m.width),
                          .forward = token_exchange(ctx, f, m, true),
                          .backward = token_exchange(ctx, f, m, false, true)});
    if (!ctx.eager() && f.latent > 0) ctx.graph.keep(latent, rows, "moe.latent");
  }
  rows = etp_exchange(ctx, m, rows, true);
  const bool sort_here = transported && ctx.split.dispatcher != "moonep" && m.local_experts > 1;
  if (!sort_here) return rows;
  rows = gather_rows(ctx, "moe_sort_rows", "moe_sort_rows_grad", Module::dispatch, rows, m.local_rows, m.width,
                     {.fp8_forward = ctx.split.fp8_dispatch, .chunks = alltoall});
  ctx.graph.follow_routing(rows);
  return rows;
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
  ctx.graph.follow_routing(self);
  ctx.graph.keep(rows, self, "moe.expert_out");
  return self;
}

Node combine(LayerContext& ctx, const FfnSpec& f, const MoeShape& m, Node rows) {
  const bool transported = ctx.split.ep > 1, alltoall = ctx.split.dispatcher == "alltoall";
  if (transported && ctx.split.dispatcher != "moonep" && m.local_experts > 1) {
    rows = gather_rows(ctx, "moe_unsort_rows", "moe_unsort_rows_grad", Module::combine, rows, m.local_rows, m.width,
                       {.fp8_backward = ctx.split.fp8_dispatch, .chunks = alltoall});
    ctx.graph.follow_routing(rows);
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
                          .backward = token_exchange(ctx, f, m, true, true)});
    rows = quantize_rows(ctx, Module::combine, rows, m, false);
  }
  if (reduced) return rows;
  Operation op = memory_operation(Module::combine, {rows}, tensor_bytes(m.tokens, m.width));
  op.forward = {memory_step("moe_unpermute", Pass::forward, MemoryClass::gather,
                            moved_bytes(ctx, m.rows, m.width, kAtomicBytes, kScatterBytes))};
  op.backward = {memory_step("moe_unpermute_grad", Pass::input_grad, MemoryClass::gather,
                             moved_bytes(ctx, m.rows, m.width, kFusedBytes, kScatterBackBytes))};
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
                               .fp8_input = ctx.split.fp8_dispatch,
                               .groups = m.local_experts,
                               .choose_tile = ctx.split.choose_expert_tile});
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
                                 .fp8_gradient = ctx.split.fp8_dispatch,
                                 .groups = m.local_experts,
                                 .choose_tile = ctx.split.choose_expert_tile});
  for (const Node n : {up, act, down}) ctx.graph.follow_routing(n);
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
  const Node weights = moe_router(ctx, f, normed, m.tokens);
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
