// Scenario -> per-rank sizes of the layer programs. Source: program.h (SplitConfig).
#include "models/build/split_config.h"

#include <algorithm>

#include "models/transformer/context_parallel.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

Dtype linear_dtype(const PrecisionConfig& precision) {
  for (Dtype d : {Dtype::bf16, Dtype::fp16, Dtype::fp32, Dtype::fp8, Dtype::fp8_block, Dtype::mxfp8, Dtype::nvfp4})
    if (precision.compute == to_string(d)) return d;
  throw ConfigError(
      {Problem{{},
               "precision.compute",
               "unknown precision '" + precision.compute + "'",
               did_you_mean(precision.compute, {"bf16", "fp16", "fp32", "fp8", "fp8_block", "mxfp8", "nvfp4"})}});
}

SplitConfig make_split_config(const Scenario& s, const SoftwareProfile& software) {
  SplitConfig c;
  c.sequence = s.batch.sequence;
  c.micro_batch = s.batch.micro_batch;
  c.tokens = s.batch.micro_batch * s.batch.sequence / s.parallel.cp;
  c.tp = s.parallel.tp;
  c.cp = s.parallel.cp;
  c.ep = s.parallel.ep;
  c.etp = s.parallel.etp;
  c.sequence_parallel = s.parallel.sequence_parallel && s.parallel.tp > 1;
  c.linear_dtype = linear_dtype(s.precision);
  // Square blocks and tiles of 1 x 128 are quantised after the gather.
  c.fp8_gather = c.sequence_parallel && (c.linear_dtype == Dtype::fp8 || c.linear_dtype == Dtype::mxfp8);
  c.fusion = software.fusion;
  // Megatron sums FP16 gradients in FP16 unless told otherwise (BF16 always in FP32: megatron/training/arguments.py).
  // Fully sharded gradients are new tensors that are reduced at once (Megatron FSDP:
  // --no-gradient-accumulation-fusion).
  const Bytes buffer = s.precision.compute == "fp16" ? Bytes(2) : s.optimizer.gradient_bytes;
  if (software.gradient_accumulation_fusion && s.optimizer.zero < 3) c.accumulated = static_cast<int>(buffer.count());
  c.permute_fusion = software.moe_permute_fusion;
  c.multi_stream_experts = software.multi_stream_experts;
  c.choose_expert_tile = s.moe.grouped_gemm == "workload_aware";
  c.capacity_factor = s.moe.capacity_factor;
  c.flash_attention = software.flash_attention;
  c.dropout = software.dropout;
  c.torch_loss = software.torch_loss;
  c.compiled_loss = software.compiled_loss;
  c.keeps_gathered = software.tp_keeps_gathered && !s.overlap.tp;
  c.dispatcher = s.moe.dispatcher;
  c.fp8_dispatch = s.moe.dispatch_precision == "fp8";
  c.router_dtype = s.moe.router_precision == "bf16" ? Dtype::bf16 : Dtype::fp32;
  c.cp_method = s.parallel.cp_method;
  c.kda_exchange = s.parallel.kda_exchange;
  c.mla_exchange = s.parallel.mla_exchange;
  c.qat = s.precision.qat != "none";
  c.kda_segments = s.parallel.kda_segments;
  const bool recurrent = std::any_of(s.model.layers.begin(), s.model.layers.end(),
                                     [](const LayerSpec& l) { return l.attention.kind == AttentionKind::kda; });
  c.cp_contiguous = s.parallel.cp_slices == "contiguous" || (s.parallel.cp_slices == "auto" && recurrent);
  const std::vector<std::int64_t>& documents = s.batch.documents;
  const std::vector<std::int64_t> whole{s.batch.sequence};
  if (!documents.empty()) {
    c.documents = static_cast<std::int64_t>(documents.size());
    c.longest_document = *std::max_element(documents.begin(), documents.end());
  }
  if (!documents.empty() || (c.cp > 1 && c.cp_contiguous))
    c.attended = attended_keys(documents.empty() ? whole : documents, c.cp, c.cp == 1 || c.cp_contiguous);
  // Pieces of a sequence that cost the same (the authors' computation-wise split): 1 / k of the tokens, and of all keys
  // that the whole sequence's queries see.
  if (s.schedule.name == "seq1f1b" && s.schedule.file.empty()) {
    c.tokens /= s.schedule.slices;
    if (c.attended == 0) c.attended = s.batch.sequence;
  }
  c.attnres_saved = s.attnres.mixes == "saved";
  return c;
}

}  // namespace k3sim
