#include "tools/planner/layout_rules.h"

#include <algorithm>

#include "models/config/field_table.h"

namespace k3sim {

namespace {

void add(std::vector<std::int64_t>& list, std::int64_t v) {
  if (v > 0 && std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
}

const ScheduleChoice* find_choice(const std::string& name) {
  static const std::vector<ScheduleChoice>& choices = schedule_choices();
  for (const ScheduleChoice& c : choices)
    if (c.name == name) return &c;
  return nullptr;
}

}  // namespace

LayoutRules::LayoutRules(const ModelSpec& model) : layers_(static_cast<std::int64_t>(model.layers.size())) {
  for (const LayerSpec& l : model.layers) {
    add(divided_by_tp_, l.attention.heads);
    add(divided_by_tp_, l.ffn.intermediate);
    if (l.attention.kind == AttentionKind::mha) add(kv_heads_, l.attention.kv_heads);
    if (!l.ffn.is_moe()) continue;
    add(divided_by_etp_, l.ffn.expert_intermediate);
    add(experts_, l.ffn.experts);
  }
}

bool LayoutRules::splits_tensors(int tp) const {
  return std::all_of(divided_by_tp_.begin(), divided_by_tp_.end(), [&](std::int64_t n) { return n % tp == 0; }) &&
         std::all_of(kv_heads_.begin(), kv_heads_.end(), [&](std::int64_t n) { return n % tp == 0 || tp % n == 0; });
}

bool LayoutRules::splits_experts(int ep, int etp) const {
  if (experts_.empty()) return ep == 1 && etp == 1;
  return std::all_of(experts_.begin(), experts_.end(), [&](std::int64_t n) { return n % ep == 0; }) &&
         std::all_of(divided_by_etp_.begin(), divided_by_etp_.end(), [&](std::int64_t n) { return n % etp == 0; });
}

Reason LayoutRules::check_batch(const Scenario& s, Layout& layout) const {
  const BatchConfig& b = s.batch;
  const ParallelConfig& p = s.parallel;
  if (b.sequence % p.cp != 0) return Reason::sequence;
  if (p.sequence_parallel && (b.sequence / p.cp * b.micro_batch) % p.tp != 0) return Reason::sequence;
  if (b.global_sequences == 0 && b.global_tokens % b.sequence != 0) return Reason::batch;
  layout.sequences = b.global_sequences > 0 ? b.global_sequences : b.global_tokens / b.sequence;
  const std::int64_t per_pass = b.micro_batch * layout.dp;
  if (layout.sequences <= 0 || layout.sequences % per_pass != 0) return Reason::batch;
  layout.microbatches = layout.sequences / per_pass;
  return Reason::ok;
}

Reason LayoutRules::check_schedule(const Scenario& s, Layout& layout) const {
  const ParallelConfig& p = s.parallel;
  layout.chunks = p.pp * p.vpp;
  if (!s.schedule.file.empty()) return Reason::ok;
  if (p.pp == 1) return p.vpp > 1 ? Reason::schedule : Reason::ok;
  const ScheduleChoice* c = find_choice(s.schedule.name);
  if (!c) return Reason::schedule;
  if (c->chunks > 0 && p.vpp != c->chunks) return Reason::schedule;
  if (c->name == "interleaved" && p.vpp < 2) return Reason::schedule;
  if (c->name == "hanayo" && p.vpp % 2 != 0) return Reason::schedule;
  const std::int64_t m = layout.microbatches;
  const bool grouped = p.vpp > 1 && (c->name == "interleaved" || c->name == "k3" || c->name == "1f1b");
  if (grouped && (m < p.pp || m % p.pp != 0)) return Reason::schedule;
  if (c->name == "dualpipe" && (p.pp % 2 != 0 || m % 2 != 0 || m < 2 * p.pp)) return Reason::schedule;
  if (c->name == "dualpipe_v" && m < 2 * p.pp) return Reason::schedule;
  if (c->name == "dualpipe") layout.chunks = p.pp;  // every chunk is held twice
  return Reason::ok;
}

Reason LayoutRules::check(const Scenario& s, Layout& layout, bool tp_across_nodes) const {
  const ParallelConfig& p = s.parallel;
  const std::int64_t gpus = s.cluster.gpus(), model_ranks = std::int64_t{p.tp} * p.pp * p.cp;
  if (gpus % model_ranks != 0 || (p.dp > 0 && model_ranks * p.dp != gpus)) return Reason::gpus;
  layout.dp = static_cast<int>(gpus / model_ranks);
  if (!tp_across_nodes && (p.tp > s.cluster.gpus_per_node || s.cluster.gpus_per_node % p.tp != 0)) return Reason::node;
  if (!splits_tensors(p.tp)) return Reason::heads;
  if (!splits_experts(p.ep, p.etp)) return Reason::experts;
  if (gpus / p.pp % (std::int64_t{p.ep} * p.etp) != 0) return Reason::expert_ranks;
  if (layers_ < std::int64_t{p.pp} * p.vpp) return Reason::layers;
  if (const Reason r = check_batch(s, layout); r != Reason::ok) return r;
  return check_schedule(s, layout);
}

}  // namespace k3sim
