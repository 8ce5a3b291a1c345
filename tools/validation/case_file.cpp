#include "tools/validation/case_file.h"

#include "models/config/yaml_reader.h"
#include "tools/validation/case_supplement.h"

namespace k3sim {

namespace {

bool there(const YamlNode& n) {
  return n.present() && n.kind() != YamlNode::Kind::null;
}

template <class T>
void get(const YamlNode& map, const char* name, T& out) {
  const YamlNode n = map.child(name);
  if (there(n)) n.to(out);
}

// Text of a scalar, whatever its type (true, 4, "ZeRO-1").
void get_text(const YamlNode& map, const char* name, std::string& out) {
  const YamlNode n = map.child(name);
  if (there(n) && n.is_scalar()) out = n.text();
}

void read_model(const YamlNode& m, CaseModel& out) {
  get(m, "name", out.name);
  get(m, "type", out.type);
  get_text(m, "hybrid", out.hybrid);
  get_text(m, "note", out.note);
  get(m, "layers", out.layers);
  get(m, "hidden", out.hidden);
  get(m, "ffn", out.ffn);
  get(m, "heads", out.heads);
  get(m, "kv_heads", out.kv_heads);
  get(m, "head_dim", out.head_dim);
  get(m, "vocab", out.vocab);
  get(m, "seq_len", out.sequence);
  get(m, "experts", out.experts);
  get(m, "topk", out.topk);
  get(m, "expert_ffn", out.expert_ffn);
  get(m, "shared_expert_ffn_total", out.shared_ffn);
  get(m, "dense_layers", out.dense_layers);
  get(m, "dense_ffn", out.dense_ffn);
  get(m, "moe_every", out.moe_every);
  get(m, "mtp_layers", out.mtp_layers);
  get(m, "gated_mlp", out.gated);
  get(m, "tied_embeddings", out.tied);
  get(m, "params_total_b", out.total_b);
  out.learned_positions = there(m.child("positions"));
  const YamlNode swa = m.child("swa");
  if (there(swa)) get(swa, "window", out.window), get(swa, "every", out.window_every);
  const YamlNode mla = m.child("mla");
  if (!there(mla)) return;
  out.mla = true;
  get(mla, "q_lora", out.q_lora);
  get(mla, "kv_lora", out.kv_lora);
  get(mla, "qk_nope", out.qk_nope);
  get(mla, "qk_rope", out.qk_rope);
  get(mla, "v_dim", out.v_dim);
}

void read_measured(const YamlNode& m, CaseMeasured& out) {
  get(m, "step_time_s", out.step_time_s);
  get(m, "tokens_per_s_per_gpu", out.tokens_per_s_per_gpu);
  get(m, "tokens_per_s_total", out.tokens_per_s_total);
  get(m, "model_tflops_per_gpu", out.model_tflops_per_gpu);
  get(m, "hardware_tflops_per_gpu", out.hardware_tflops_per_gpu);
  get(m, "mfu_pct", out.mfu_pct);
  get(m, "hfu_pct", out.hfu_pct);
  get(m, "mfu_peak_tflops", out.mfu_peak_tflops);
  get(m, "samples_per_s", out.samples_per_s);
  get(m, "samples_per_s_per_gpu", out.samples_per_s_per_gpu);
  get(m, "peak_memory_gib", out.peak_memory_gib);
  get(m, "peak_reserved_gib", out.peak_reserved_gib);
  get(m, "iteration_ms", out.iteration_ms);
  get(m, "layer_forward_ms", out.layer_forward_ms);
  get(m, "gpu_hours", out.gpu_hours);
  get(m, "activation_gib", out.activation_gib);
  get_text(m, "memory_kind", out.memory_kind);
}

void read_parallel(const YamlNode& p, CaseParallel& out) {
  get(p, "tp", out.tp);
  get(p, "pp", out.pp);
  get(p, "vpp", out.vpp);
  get(p, "cp", out.cp);
  get(p, "ep", out.ep);
  get(p, "etp", out.etp);
  get(p, "dp", out.dp);
  get_text(p, "distributed_optimizer", out.optimizer);
  get_text(p, "sequence_parallel", out.sequence_parallel);
}

void read_other(const YamlNode& o, Case& out) {
  get_text(o, "framework", out.framework);
  get_text(o, "schedule", out.schedule);
  get_text(o, "overlap", out.overlap);
  get_text(o, "token_drop", out.token_drop);
  get_text(o, "dispatcher", out.dispatcher);
  get_text(o, "method", out.method);
}

Case read_case(const YamlNode& n) {
  n.accept_all();
  Case c;
  c.line = n.place().line;
  n.require("id", c.id);
  get(n, "group", c.group);
  get(n, "family", c.family);
  get(n, "tier", c.tier);
  get_text(n, "task", c.task);
  get_text(n, "date", c.date);
  get_text(n, "precision", c.precision);
  get_text(n, "recompute", c.recompute);
  get_text(n, "flops_convention", c.flops_convention);
  get_text(n, "notes", c.notes);
  const YamlNode h = n.child("hardware");
  get_text(h, "gpu", c.gpu);
  get_text(h, "internode", c.internode);
  get_text(h, "intranode", c.intranode);
  get(h, "gpus_total", c.gpus);
  get(h, "gpus_per_node", c.gpus_per_node);
  read_model(n.child("model"), c.model);
  read_parallel(n.child("parallelism"), c.parallel);
  const YamlNode b = n.child("batch");
  get(b, "mbs", c.mbs);
  get(b, "gbs", c.gbs);
  get(b, "grad_accum", c.grad_accum);
  get(b, "local_batch", c.local_batch);
  if (there(n.child("other"))) read_other(n.child("other"), c);
  read_measured(n.child("measured"), c.measured);
  const YamlNode check = n.child("check");
  if (!there(check)) return c;
  get_text(check, "nearest_convention", c.nearest_convention);
  const YamlNode g = check.child("model_gflops_per_token");
  if (there(g)) get(g, "causal", c.gflops_causal), get(g, "full", c.gflops_full), get(g, "6N", c.gflops_6n);
  return c;
}

}  // namespace

std::vector<Case> load_cases(const std::string& path) {
  YamlDocument doc = YamlDocument::load(path);
  std::vector<Case> cases;
  for (const YamlNode& n : doc.root().items()) cases.push_back(read_case(n));
  doc.throw_if_problems();
  apply_supplement(path, cases);
  return cases;
}

}  // namespace k3sim
