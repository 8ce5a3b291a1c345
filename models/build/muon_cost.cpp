// Matrices of a layer and their Newton-Schulz work: 5 (4 m^2 n + 2 m^3) FLOPs each, m <= n. Source: k3-facts 2.10.
#include "models/build/muon_cost.h"

#include <algorithm>

namespace k3sim {

namespace {

MuonMatrix matrix(std::int64_t count, std::int64_t a, std::int64_t b) {
  return {count, std::min(a, b), std::max(a, b)};
}

void add_heads(std::vector<MuonMatrix>& out, std::int64_t heads, std::int64_t dim, std::int64_t width, bool per_head) {
  out.push_back(per_head ? matrix(heads, dim, width) : matrix(1, heads * dim, width));
}

void add_attention(std::vector<MuonMatrix>& out, const AttentionSpec& a, std::int64_t hidden, bool per_head) {
  const std::int64_t value_width = a.heads * a.v_dim;
  if (a.kind == AttentionKind::mla) {
    if (a.q_lora_rank > 0) out.push_back(matrix(1, a.q_lora_rank, hidden));
    add_heads(out, a.heads, a.qk_dim, a.q_lora_rank > 0 ? a.q_lora_rank : hidden, per_head);
    out.push_back(matrix(1, a.kv_lora_rank + a.rope_dim, hidden));
    add_heads(out, a.heads, a.qk_dim - a.rope_dim + a.v_dim, a.kv_lora_rank, per_head);
  } else {
    const std::int64_t kv = a.kind == AttentionKind::mha ? a.kv_heads : a.heads;
    add_heads(out, a.heads, a.qk_dim, hidden, per_head);
    add_heads(out, kv, a.qk_dim, hidden, per_head);
    add_heads(out, kv, a.v_dim, hidden, per_head);
  }
  if (a.output_gate == GateKind::full) out.push_back(matrix(1, value_width, hidden));
  out.push_back(matrix(1, value_width, hidden));
}

}  // namespace

std::vector<MuonMatrix> muon_matrices(const ModelSpec& model, std::size_t index, bool per_head, bool experts) {
  const LayerSpec& l = model.layers[index];
  const FfnSpec& f = l.ffn;
  const std::int64_t inputs = is_gated(f.activation) ? 2 : 1;
  std::vector<MuonMatrix> out;
  if (experts) {
    const std::int64_t width = f.latent > 0 ? f.latent : model.hidden;
    if (f.is_moe()) out.push_back(matrix(f.experts * (inputs + 1), f.expert_intermediate, width));
    return out;
  }
  add_attention(out, l.attention, model.hidden, per_head);
  const std::int64_t dense = f.is_moe() ? f.shared_intermediate : f.intermediate;
  if (dense > 0) out.push_back(matrix(inputs + 1, dense, model.hidden));
  if (f.latent > 0) out.push_back(matrix(2, f.latent, model.hidden));
  return out;
}

Flops newton_schulz_flops(const MuonMatrix& x) {
  const double m = static_cast<double>(x.m), n = static_cast<double>(x.n);
  return Flops(static_cast<double>(x.count) * 5.0 * (4.0 * m * m * n + 2.0 * m * m * m));
}

namespace {

double seconds(const Machine& machine, const std::vector<MuonMatrix>& matrices) {
  double total = 0;
  for (const MuonMatrix& x : matrices) {
    Kernel k;
    k.family = KernelFamily::newton_schulz;
    k.name = "newton_schulz";
    k.batch = x.count;
    k.m = x.m;
    k.n = x.n;
    k.flops = newton_schulz_flops(x);
    total += machine.cost->time(k).time.seconds();
  }
  return total;
}

}  // namespace

Time muon_time(const StepPlan& plan, const Machine& machine, const std::vector<const Chunk*>& chunks,
               std::int64_t dense_shards, std::int64_t expert_shards) {
  const bool per_head = plan.scenario.optimizer.name == "muon_per_head";
  const double expert_ranks = static_cast<double>(plan.scenario.parallel.ep * plan.scenario.parallel.etp);
  double total = 0;
  const ModelSpec& model = plan.scenario.model;
  for (const Chunk* c : chunks)
    for (const ChunkPart& p : c->parts) {
      if (p.kind != ChunkPart::Kind::layer && p.kind != ChunkPart::Kind::mtp) continue;
      const bool mtp = p.kind == ChunkPart::Kind::mtp;
      const std::size_t index = mtp ? model.layers.size() - 1 : static_cast<std::size_t>(p.layer);
      std::vector<MuonMatrix> dense = muon_matrices(model, index, per_head, false);
      if (mtp) dense.push_back(matrix(1, model.hidden, 2 * model.hidden));
      const double experts = seconds(machine, muon_matrices(model, index, per_head, true));
      total += seconds(machine, dense) / static_cast<double>(dense_shards) +
               experts / expert_ranks / static_cast<double>(expert_shards);
    }
  return Time::from_seconds_ceil(total);
}

}  // namespace k3sim
