// Turns architecture (ModelSpec) and split (SplitConfig) into layer programs, and counts parameters.
// One builder file per idea: attention_mha.cpp, attention_mla.cpp, attention_kda.cpp, ffn_dense.cpp, ffn_moe.cpp,
// attnres.cpp, embedding_head.cpp, norms.cpp; layer.cpp composes them.
// Source: k3-facts sections 1.2-1.5 (data flow, parameter audit, activation inventory).
#pragma once

#include "models/config/model_spec.h"
#include "models/transformer/program.h"

namespace k3sim {

// Program of decoder layer `index` (0-based): norms, attention, FFN or MoE, residuals, AttnRes mixes.
LayerProgram layer_program(const ModelSpec& model, std::size_t index, const SplitConfig& split);
LayerProgram embedding_program(const ModelSpec& model, const SplitConfig& split);
LayerProgram head_program(const ModelSpec& model,
                          const SplitConfig& split);  // final norm (+ AttnRes output mix), logits, loss
LayerProgram mtp_program(const ModelSpec& model, const SplitConfig& split);  // one MTP layer incl. its head pass

// Vocabulary parallelism: one pipeline rank's share of the embedding and of the output head.
struct VocabularySplit {
  int ranks = 1;        // pipeline ranks that share the tables
  bool overlap = true;  // the collectives of the shares run beside compute; false: compute waits for them
};
LayerProgram embedding_share_program(const ModelSpec& model, const SplitConfig& split, const VocabularySplit& share);
LayerProgram head_share_program(const ModelSpec& model, const SplitConfig& split, const VocabularySplit& share);

// Parameters held by one rank of a layer, by which group shards their optimizer state.
struct ParameterCount {
  std::int64_t dense = 0;    // replicated over dp (and cp); already divided by tp
  std::int64_t experts = 0;  // routed experts on this rank; replicated over expert-dp = dp*cp*tp/(ep*etp)
};
ParameterCount layer_parameters(const ModelSpec& model, std::size_t index, const SplitConfig& split);
ParameterCount embedding_parameters(const ModelSpec& model, const SplitConfig& split);
ParameterCount head_parameters(const ModelSpec& model,
                               const SplitConfig& split);  // 0 weight when tied; includes final norm
ParameterCount mtp_parameters(const ModelSpec& model, const SplitConfig& split);

// Whole-model audit without any split.
struct ComponentCount {
  std::string name;
  std::int64_t count = 0;            // how many of them the model has
  std::int64_t parameters = 0;       // of one
  Flops forward_flops_per_token{0};  // of one, 2 x active parameters, without the softmax-attention core
};
struct ModelAudit {
  std::int64_t total_parameters = 0;
  std::int64_t active_parameters = 0;  // LM head counted, embedding not (k3-facts 1.3)
  std::vector<ComponentCount> components;
};
ModelAudit audit(const ModelSpec& model);

// Model FLOPs of one token, forward only (x3 for training), causal attention at half, averaged over a document of
// `sequence` tokens; no recompute. The definition behind model_tflops_per_gpu and mfu_pct.
enum class FlopConvention : std::uint8_t { causal, full, six_n };
Flops model_flops_per_token(const ModelSpec& model, std::int64_t sequence,
                            FlopConvention convention = FlopConvention::causal);

}  // namespace k3sim
