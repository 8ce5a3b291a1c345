// What one layer asks of one rank for one micro-batch: an ordered list of kernels and communications for forward and
// backward, and the tensors that wait for backward. The step builder instantiates these programs once per action of the
// pipeline schedule; activation policies drop or replay parts of them by `Module`.
//
// Order and lanes: items of one lane run in list order. An item additionally waits for the items in `after` (indices in
// the same program); an empty `after` means "the item before it in the list". Backward programs hold input-gradient and
// weight-gradient items in their natural order, tagged by kernel.pass; a split backward (I then W) filters by the tag.
// Source: PyTorch autograd order; k3-facts sections 1.5 and 2.2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/transformer/kernel.h"

namespace k3sim {

// Streams on which a layer's items run.
enum class Lane : std::uint8_t { compute, side, tp_comm, cp_comm, ep_comm };
constexpr int kLanes = 5;

// Named pieces of a layer: the unit of recompute, offload and storage policies (Megatron's --recompute-modules and
// more).
enum class Module : std::uint8_t {
  norm,
  qkv_proj,
  mla_up_proj,
  conv,
  gate,
  core_attention,
  attn_out,
  ffn_up,
  activation,
  ffn_down,
  router,
  latent_proj,
  dispatch,
  expert_up,
  expert_activation,
  expert_down,
  combine,
  shared_up,
  shared_activation,
  shared_down,
  attnres,
  embedding,
  head,
  residual
};
constexpr int kModules = 24;
const char* to_string(Module m);

enum class CommKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  dispatch,
  combine,
  ring_exchange
};
// Process group whose ranks take part.
enum class GroupKind : std::uint8_t { tp, cp, ep, etp, pp, dp, expert_dp };

// bytes: buffer size as nccl-tests counts it (total for all_gather, reduce_scatter, all_to_all; per-rank buffer for
// all_reduce). dispatch/combine: payload rows leaving this rank if every row went to another rank
// (tokens*topk*width*e).
struct CommOp {
  CommKind kind = CommKind::all_reduce;
  GroupKind group = GroupKind::tp;
  Bytes bytes{0};
  std::int64_t tokens = 0, topk = 0, experts = 0;  // dispatch and combine: for de-duplication counts
  std::int64_t groups = 1, groups_chosen = 1;      // group-limited routing
  std::int64_t row_bytes = 0;
  bool saved_plan = false;  // backward: the plan of the forward is used again
};

struct Item {
  const char* name = "";
  Lane lane = Lane::compute;
  Module module = Module::norm;
  Pass pass = Pass::forward;
  bool is_comm = false;
  Kernel kernel;  // valid when !is_comm
  CommOp comm;    // valid when is_comm
  std::vector<std::uint16_t> after;
};

// A tensor kept from forward to backward, per rank and micro-batch, in the order it is produced.
struct SavedTensor {
  std::string name;  // for example "kda.q_conv", stable: policies match it by pattern
  Module module = Module::norm;
  Bytes bytes{0};
  Dtype dtype = Dtype::bf16;
  bool recomputable = true;  // can be rebuilt from earlier kept tensors by replaying its module's forward items; false
                             // for layer inputs, hidden-dropout masks and the output of an attention core
};

struct Liveness;

struct LayerProgram {
  std::vector<Item> forward;
  std::vector<Item> backward;
  std::vector<SavedTensor> saved;
  Bytes workspace{0};                        // largest transient beyond saved tensors, forward or backward
  Bytes boundary{0};                         // bytes handed to the next layer (AttnRes adds stored rows)
  std::shared_ptr<const Liveness> liveness;  // which tensors live how long (liveness.h); set by LayerGraph
};

// How a layer is split and run. All degrees >= 1; tp includes sequence parallelism when set.
struct SplitConfig {
  std::int64_t tokens = 0;       // tokens per micro-batch on one context-parallel rank = micro_batch * sequence / cp
  std::int64_t sequence = 0;     // full document length attended over (before cp)
  std::int64_t micro_batch = 1;  // sequences per micro-batch
  int tp = 1, cp = 1, ep = 1, etp = 1;
  bool sequence_parallel = false;
  Dtype linear_dtype = Dtype::bf16;  // dtype of linear-layer GEMMs; attention and head stay in bf16/fp16
  bool fp8_head = false;
  bool fp8_gather = false;  // sequence-parallel inputs and output gradients of linear layers are quantised as shards
                            // and gathered in FP8 (TransformerEngine, torchao: one scale per tensor or MX blocks)
  int fusion = 1;  // 0: eager elementwise chains, 1: fused norms/activations/rope (Megatron), 2: + fused residual-norm
  // Products add weight gradients to buffers of that many bytes per value; 0: they write new tensors.
  int accumulated = 0;
  bool multi_stream_experts = false;  // the host issues the products and casts of routed experts one expert at a time
  bool permute_fusion = true;   // rows of experts are permuted and summed by fused kernels, not by PyTorch's operators
  double capacity_factor = 0;   // > 0: token dropping with padded capacity; 0: dropless
  bool flash_attention = true;  // false: scores materialised (Megatron 2021/22 style)
  bool dropout = false;         // attention/hidden dropout masks and kernels (GPT-era stacks)
  bool torch_loss = false;      // cross-entropy of plain PyTorch (loss_parallel under tp): more FP32 copies of logits
  bool compiled_loss = false;   // cross-entropy compiled into one pass each way: only the logits are kept
  bool keeps_gathered = false;  // linear layers keep their input as gathered over tp instead of gathering it again
  std::string dispatcher = "alltoall";  // alltoall | allgather | deepep | moonep ...
  bool fp8_dispatch = false;            // rows travel to the experts (and their gradients back) in FP8
  Dtype router_dtype = Dtype::fp32;     // of the router's products; scores are FP32
  std::string cp_method = "auto";       // context_parallel.h says what it means for each kind of attention
  std::string kda_exchange = "auto", mla_exchange = "auto";  // override cp_method for one kind of attention
  bool qat = false;                                          // routed experts see MXFP4 weights and MXFP8 inputs
  bool cp_contiguous = false;  // slices in sequence order (KDA needs them) instead of zigzag
  std::int64_t attended = 0;   // keys of the busiest rank's queries (attended_keys); 0: the whole sequence, balanced
  std::int64_t documents = 1;  // packed into one sequence
  std::int64_t longest_document = 0;  // 0: the sequence
  int kda_segments = 1;               // pieces of every serial chain of the KDA core inside one GPU; 0: as many as pay
  bool attnres_saved = false;         // AttnRes mixes are kept for backward instead of being mixed again
  bool choose_expert_tile = false;    // grouped GEMMs pick launch parameters from the counts (k3-facts 3.10)
  std::int64_t expert_rows = 0;       // rows this rank's experts compute; 0: balanced tokens * topk
  double expert_row_ratio = 1.0;  // busiest rank's rows over the balanced number (routing skew), when expert_rows is 0
};

}  // namespace k3sim
