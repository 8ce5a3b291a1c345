// Scenario -> per-rank sizes of the layer programs. Source: program.h (SplitConfig).
#include "models/build/split_config.h"

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
  c.fusion = software.fusion;
  c.capacity_factor = s.moe.capacity_factor;
  c.flash_attention = software.flash_attention;
  c.dropout = software.dropout;
  c.dispatcher = s.moe.dispatcher;
  c.attnres_saved = s.attnres.mixes == "saved";
  return c;
}

}  // namespace k3sim
