// Model dimensions of a Megatron-type launch, with Megatron-LM's defaults:
//   ffn = 4 h, with a gated activation 64 floor(2/3 4 h / 64); head width = h / heads; biases, LayerNorm, learned
//   positions and tied embeddings unless switched off; vocabulary padded to a multiple of divisor x tp.
// Source: Megatron-LM megatron/training/arguments.py (validate_args, defaults), tokenizer.py
// (_vocab_size_with_padding).
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tools/import/imported_scenario.h"
#include "tools/import/pipeline_layout.h"

namespace k3sim {
namespace {

class ModelReader {
 public:
  ModelReader(LaunchArguments& a, std::vector<std::string>& notes) : a_(a), notes_(notes) {}

  ModelSpec read() {
    model_.name = "imported";
    model_.hidden = need({"hidden-size"});
    const std::int64_t layers = a_.integer({"num-layers", "encoder-num-layers", "decoder-num-layers"}).value_or(0);
    if (layers < 1 || layers > 10000) throw ConfigError("--num-layers is missing or out of range", {}, {a_.file, 0, 0});
    general();
    vocabulary();
    const AttentionSpec attention = read_attention();
    model_.layers.assign(static_cast<std::size_t>(layers), LayerSpec{attention, dense_ffn()});
    mixture();
    model_.mtp_layers = a_.integer({"mtp-num-layers", "num-nextn-predict-layers"}, 0);
    return std::move(model_);
  }

 private:
  bool recipe() const { return a_.origin == "nemo" || a_.origin == "bridge"; }

  std::int64_t need(LaunchArguments::Names names) {
    const std::optional<std::int64_t> value = a_.integer(names);
    if (!value) throw ConfigError(fmt::format("--{} is missing", *names.begin()), {}, Place{a_.file, 0, 0});
    return *value;
  }

  void general() {
    const std::string norm = a_.text({"normalization"}).value_or("LayerNorm");
    const bool rms = norm.find("rms") == 0 || norm.find("RMS") == 0;
    model_.norm = rms ? NormKind::rms_norm : NormKind::layer_norm;
    model_.norm_bias = !rms && norm.find("layernorm1p") == std::string::npos;
    model_.max_positions =
        a_.integer({"max-position-embeddings"}, a_.integer({"seq-length", "encoder-seq-length"}, 4096));
    const std::string position = a_.text({"position-embedding-type"}).value_or("learned_absolute");
    rotary_ =
        a_.flag({"use-rotary-position-embeddings"}) || position == "rope" || position == "yarn" || position == "mrope";
    model_.learned_positions = position == "learned_absolute" && !rotary_;
    if (const auto share = a_.text({"share-embeddings-and-output-weights"}))
      model_.tied_embeddings = *share == "true" || *share == "True";
    else
      model_.tied_embeddings = !a_.flag({"untie-embeddings-and-output-weights"});
    bias_ = !a_.flag({"disable-bias-linear"});
    if (const auto bias = a_.text({"bias", "add-bias-linear"})) bias_ = *bias == "true" || *bias == "True";
  }

  void vocabulary() {
    const std::int64_t divisor = a_.integer({"make-vocab-size-divisible-by"}, 128);
    const std::int64_t tp = a_.integer({"tensor-model-parallel-size", "model-parallel-size"}, 1);
    std::int64_t size = a_.integer({"padded-vocab-size", "pad-vocab-size-to"}, 0);
    if (size > 0) return void(model_.vocab = size);
    size = a_.integer({"vocab-size"}, 0);
    if (size == 0) size = guessed_vocabulary();
    size += a_.integer({"extra-vocab-size"}, 0);
    const std::int64_t multiple = std::max<std::int64_t>(1, divisor * tp);
    model_.vocab = (size + multiple - 1) / multiple * multiple;
  }

  // The tokenizer is a path; its family is all that can be read from it.
  std::int64_t guessed_vocabulary() {
    std::string hint;
    for (const LaunchArgument& arg : a_.all())
      if (arg.name.find("tokenizer") != std::string::npos || arg.name == "vocab-file" || arg.name == "type" ||
          arg.name == "hf-model-id" || arg.name == "model-name-or-path")
        for (const std::string& v : arg.values) hint += v + " ";
    std::transform(hint.begin(), hint.end(), hint.begin(), [](unsigned char c) { return std::tolower(c); });
    struct Family {
      const char* word;
      std::int64_t size;
    };
    static const Family kFamilies[] = {{"llama-3", 128256},   {"llama3", 128256},
                                       {"deepseek", 129280},  {"qwen3", 151936},
                                       {"qwen", 151936},      {"kimi", 163840},
                                       {"moonlight", 163840}, {"mixtral-8x22b", 32768},
                                       {"mixtral", 32000},    {"llama2", 32000},
                                       {"llama-2", 32000},    {"mistral", 32000},
                                       {"gpt2", 50257},       {"gptsentencepiece", 256000},
                                       {"nemotron", 256000}};
    for (const Family& f : kFamilies) {
      if (hint.find(f.word) == std::string::npos) continue;
      notes_.push_back(fmt::format("vocabulary {} from the tokenizer's family '{}'", f.size, f.word));
      return f.size;
    }
    notes_.push_back("vocabulary size unknown; GPT-2's 50257 assumed (set model.vocab)");
    return 50257;
  }

  AttentionSpec read_attention() {
    AttentionSpec s;
    s.heads = need({"num-attention-heads"});
    if (a_.flag({"multi-latent-attention"})) {
      s.kind = AttentionKind::mla;
      s.rope_dim = a_.integer({"qk-pos-emb-head-dim"}, 64);
      s.qk_dim = a_.integer({"qk-head-dim"}, 128) + s.rope_dim;
      s.v_dim = a_.integer({"v-head-dim"}, 128);
      s.q_lora_rank = a_.integer({"q-lora-rank"}, 0);
      s.kv_lora_rank = a_.integer({"kv-lora-rank"}, 512);
      a_.integer({"kv-channels"});
      a_.integer({"num-query-groups"});
      a_.flag({"qk-layernorm"});
      return s;
    }
    s.qk_dim = s.v_dim = a_.integer({"kv-channels"}, model_.hidden / s.heads);
    const bool grouped = a_.flag({"group-query-attention"}) || recipe() || a_.has({"num-key-value-heads"});
    const std::int64_t groups = a_.integer({"num-query-groups", "num-key-value-heads"}, s.heads);
    s.kv_heads = grouped ? groups : s.heads;
    s.rotary = rotary_;
    s.qkv_bias = bias_ || a_.flag({"add-qkv-bias"});
    s.out_bias = bias_;
    s.qk_norm = a_.flag({"qk-layernorm"});
    if (const LaunchArgument* window = a_.find({"window-size"}); window && !window->values.empty())
      s.window = std::max(0L, std::atol(window->values.front().c_str() + (window->values.front().front() == '(')));
    return s;
  }

  FfnSpec dense_ffn() {
    FfnSpec f;
    const std::string word = a_.text({"activation", "activation-func"}).value_or("gelu");
    const bool gated = a_.flag({"swiglu", "gated-linear-unit"}) || word.find("glu") != std::string::npos;
    if (gated)
      f.activation = Activation::swiglu;
    else if (a_.flag({"squared-relu"}) || word.find("squared-relu") != std::string::npos || word == "squared_relu")
      f.activation = Activation::squared_relu;
    else
      f.activation = Activation::gelu;
    const std::int64_t usual = gated ? (4 * model_.hidden * 2 / 3) / 64 * 64 : 4 * model_.hidden;
    f.intermediate = a_.integer({"ffn-hidden-size"}, usual);
    f.bias = bias_;
    return f;
  }

  // Experts of the i-th expert layer: DeepSpeed takes a list.
  std::vector<std::int64_t> expert_counts() {
    std::vector<std::int64_t> counts;
    const LaunchArgument* arg = a_.find({"num-experts", "num-moe-experts"});
    if (arg)
      for (const std::string& v : arg->values)
        if (const long count = std::atol(v.c_str()); count > 0) counts.push_back(count);
    return counts;
  }

  std::vector<int> expert_layers() {
    const std::size_t layers = model_.layers.size();
    const bool deepspeed = a_.origin == "deepspeed";
    const std::int64_t interval = deepspeed ? a_.integer({"expert-interval"}, 2) : 1;
    std::vector<int> pattern(layers, 0);
    const LaunchArgument* arg = a_.find({"moe-layer-freq"});
    std::int64_t every = interval;
    if (arg && !arg->values.empty()) {
      std::string text;
      for (const std::string& v : arg->values) text += (text.empty() ? "" : arg->values.size() > 1 ? "," : "") + v;
      const bool list = arg->values.size() > 1 && text.find('[') == std::string::npos;
      if (const auto given = parse_layer_pattern(list ? "[" + text + "]" : text)) {
        for (std::size_t i = 0; i < layers; ++i) pattern[i] = (*given)[i % given->size()];
        return pattern;
      }
      every = std::max<std::int64_t>(1, a_.integer({"moe-layer-freq"}, 1));
    }
    for (std::size_t i = 0; i < layers; ++i)  // DeepSpeed: the last layer of each interval
      pattern[i] = static_cast<std::int64_t>(deepspeed ? i + 1 : i) % every == 0 ? 1 : 0;
    return pattern;
  }

  void mixture() {
    const std::vector<std::int64_t> counts = expert_counts();
    if (counts.empty() || (counts.size() == 1 && counts.front() == 1)) return;
    FfnSpec f = model_.layers.front().ffn;
    f.expert_intermediate = a_.integer({"moe-ffn-hidden-size"}, f.intermediate);
    f.intermediate = 0;
    f.topk = a_.integer({"moe-router-topk", "topk", "moe-top-k"}, a_.origin == "deepspeed" ? 1 : 2);
    f.shared_intermediate = a_.integer({"moe-shared-expert-intermediate-size"}, 0);
    if (f.shared_intermediate == 0)
      f.shared_intermediate = a_.integer({"num-shared-experts"}, 0) * f.expert_intermediate;
    f.shared_gate = a_.flag({"moe-shared-expert-gate"});
    f.latent = a_.integer({"moe-latent-size"}, 0);
    f.selection_bias = a_.flag({"moe-router-enable-expert-bias"});
    f.groups = a_.integer({"moe-router-num-groups"}, 1);
    f.groups_chosen = a_.integer({"moe-router-group-topk"}, 1);
    if (f.groups_chosen > f.groups) f.groups_chosen = f.groups;
    const std::vector<int> pattern = expert_layers();
    std::size_t index = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == 0) continue;
      f.experts = counts[std::min(index++, counts.size() - 1)];
      model_.layers[i].ffn = f;
    }
  }

  LaunchArguments& a_;
  std::vector<std::string>& notes_;
  ModelSpec model_;
  bool rotary_ = false, bias_ = true;
};

}  // namespace

ModelSpec model_of_launch(LaunchArguments& arguments, std::vector<std::string>& notes) {
  return ModelReader(arguments, notes).read();
}

}  // namespace k3sim
