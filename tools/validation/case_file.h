// One measured training run of validation/cases.yaml, as the file states it; no interpretation here.
// Absent and null values stay empty. Unknown keys are allowed: the file is a collection of published tables.
// Source: validation README ("How to read a case"); product-spec section 6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k3sim {

struct CaseModel {
  std::string name, type, hybrid, note;
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, sequence = 0;
  std::int64_t experts = 0, topk = 0, expert_ffn = 0, shared_ffn = 0, dense_layers = 0, dense_ffn = 0, moe_every = 1;
  std::int64_t mtp_layers = 0, window = 0, window_every = 1;
  std::int64_t q_lora = 0, kv_lora = 0, qk_nope = 0, qk_rope = 0, v_dim = 0;
  bool gated = true, tied = false, learned_positions = false, mla = false;
  double total_b = 0;  // published parameters in 1e9
};

struct CaseParallel {
  std::optional<int> tp, pp, vpp, cp, ep, etp, dp;
  std::string optimizer;  // raw text of distributed_optimizer
  std::string sequence_parallel;
};

struct CaseMeasured {
  std::optional<double> step_time_s, tokens_per_s_per_gpu, tokens_per_s_total, model_tflops_per_gpu,
      hardware_tflops_per_gpu, mfu_pct, hfu_pct, mfu_peak_tflops, samples_per_s, samples_per_s_per_gpu, peak_memory_gib,
      peak_reserved_gib, iteration_ms, layer_forward_ms, gpu_hours, activation_gib;
  std::string memory_kind;
};

struct Case {
  std::string id, group, family, tier, task, date, precision, recompute, flops_convention;
  std::string gpu, internode, intranode;
  int gpus = 0, gpus_per_node = 8;
  CaseModel model;
  CaseParallel parallel;
  std::optional<double> mbs, gbs, grad_accum, local_batch;
  std::string framework, schedule, overlap, token_drop, dispatcher, method, notes;
  std::vector<int> stage_layers;  // where a source says how it cut the layers
  CaseMeasured measured;
  std::string nearest_convention;
  std::optional<double> gflops_causal, gflops_full, gflops_6n;  // per token, forward and backward
  int line = 0;
};

// Throws ConfigError.
std::vector<Case> load_cases(const std::string& path);

}  // namespace k3sim
