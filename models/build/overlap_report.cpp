// See overlap_report.h. Source: hardware notes 4.2.
#include "models/build/overlap_report.h"

#include <algorithm>

namespace k3sim {

std::string layer_kind_name(const LayerSpec& layer) {
  const AttentionKind k = layer.attention.kind;
  const char* attention = k == AttentionKind::kda ? "kda" : k == AttentionKind::mla ? "mla" : "mha";
  return std::string(attention) + (layer.ffn.is_moe() ? "+moe" : "+dense");
}

std::vector<LayerOverlap> overlap_report(const StepPlan& plan, const Machine& machine) {
  std::vector<LayerOverlap> out;
  std::vector<const TimedLayer*> seen;
  for (const Chunk& c : plan.chunks)
    for (const ChunkPart& p : c.parts) {
      if (p.kind != ChunkPart::Kind::layer || p.timed->offloaded + p.timed->remote == Bytes(0)) continue;
      const auto known = std::find(seen.begin(), seen.end(), p.timed);
      if (known != seen.end()) {
        ++out[static_cast<std::size_t>(known - seen.begin())].layers;
        continue;
      }
      seen.push_back(p.timed);
      LayerOverlap o;
      o.kind = layer_kind_name(plan.scenario.model.layers[static_cast<std::size_t>(p.layer)]);
      o.layers = 1;
      o.host = p.timed->offloaded;
      o.remote = p.timed->remote;
      if (o.host > Bytes(0)) o.copy += o.host / machine.gpu.host_link;
      if (o.remote > Bytes(0)) o.copy += o.remote / machine.comm.scale_out.nic_payload;
      o.forward = p.timed->forward.summary.elapsed;
      o.backward = p.timed->backward.summary.elapsed;
      out.push_back(o);
    }
  return out;
}

}  // namespace k3sim
