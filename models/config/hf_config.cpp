// Reading of Hugging Face config.json; see hf_config.h. Every problem of the file is collected before throwing.
// Source: huggingface/transformers configuration classes; K3 keys as transcribed in k3-facts section 1.2.
#include "models/config/hf_config.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/config/model_loader.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

using Json = nlohmann::json;

class Config {
 public:
  Config(const Json& json, std::string file, std::string prefix, std::vector<Problem>& problems)
      : json_(json), file_(std::move(file)), prefix_(std::move(prefix)), problems_(problems) {}

  bool has(const std::string& key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  std::int64_t number(const std::string& key) const { return read_number(key, nullptr); }
  std::int64_t number_or(const std::string& key, std::int64_t usual) const { return read_number(key, &usual); }
  bool flag_or(const std::string& key, bool usual) const {
    if (!has(key)) return usual;
    if (json_.at(key).is_boolean()) return json_.at(key).get<bool>();
    problem(key, "must be true or false");
    return usual;
  }
  std::string text_or(const std::string& key, const std::string& usual) const {
    if (!has(key)) return usual;
    if (json_.at(key).is_string()) return json_.at(key).get<std::string>();
    problem(key, "must be a string");
    return usual;
  }
  std::vector<std::int64_t> numbers(const std::string& key) const {
    std::vector<std::int64_t> out;
    if (!has(key) || !json_.at(key).is_array()) {
      problem(key, "must be a list of layer numbers");
      return out;
    }
    for (const Json& item : json_.at(key)) {
      if (item.is_number_integer())
        out.push_back(item.get<std::int64_t>());
      else
        problem(key, "holds something that is not an integer");
    }
    return out;
  }
  Config section(const std::string& key) const {
    static const Json kEmpty = Json::object();
    if (has(key) && json_.at(key).is_object()) return {json_.at(key), file_, prefix_ + key + ".", problems_};
    problem(key, "is missing or not an object");
    return {kEmpty, file_, prefix_ + key + ".", problems_};
  }
  void problem(const std::string& key, const std::string& what, const std::string& hint = {}) const {
    for (const Problem& p : problems_) {
      if (p.key == prefix_ + key && p.what == what) return;
    }
    problems_.push_back({{file_, 0, 0}, prefix_ + key, what, hint});
  }

 private:
  std::int64_t read_number(const std::string& key, const std::int64_t* usual) const {
    if (!has(key)) {
      if (usual != nullptr) return *usual;
      problem(key, "is missing; the architecture needs it");
      return 1;
    }
    const Json& value = json_.at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
      problem(key, fmt::format("is {}; must be a whole number that is not negative", value.dump()));
      return 1;
    }
    return value.get<std::int64_t>();
  }

  const Json& json_;
  std::string file_, prefix_;
  std::vector<Problem>& problems_;
};

Activation activation_of(const Config& c, const std::string& usual) {
  const std::string word = c.text_or("hidden_act", usual);
  if (word == "silu" || word == "swish") return Activation::swiglu;
  if (word == "situ") return Activation::situ_glu;
  const std::vector<std::string> known = {"silu", "swish", "situ"};
  c.problem("hidden_act", fmt::format("'{}' is not supported; known: silu, swish, situ", word),
            did_you_mean(word, known));
  return Activation::swiglu;
}

void read_globals(const Config& c, ModelSpec& m) {
  m.hidden = c.number("hidden_size");
  m.vocab = c.number("vocab_size");
  const bool other_name = !c.has("max_position_embeddings") && c.has("model_max_length");
  m.max_positions = c.number(other_name ? "model_max_length" : "max_position_embeddings");
  m.tied_embeddings = c.flag_or("tie_word_embeddings", false);
  m.mtp_layers = c.number_or("num_nextn_predict_layers", 0);
}

void set_layers(const Config& c, ModelSpec& m, const LayerSpec& usual) {
  const std::int64_t count = c.number("num_hidden_layers");
  if (count < 1 || count > 10000) {
    c.problem("num_hidden_layers", fmt::format("is {}; must be between 1 and 10000", count));
    return;
  }
  m.layers.assign(static_cast<std::size_t>(count), usual);
}

AttentionSpec grouped_query(const Config& c, bool qk_norm) {
  AttentionSpec a;
  a.heads = c.number("num_attention_heads");
  a.kv_heads = c.number_or("num_key_value_heads", a.heads);
  const std::int64_t usual = a.heads > 0 ? c.number("hidden_size") / a.heads : 0;
  a.qk_dim = a.v_dim = c.number_or("head_dim", usual);
  if (c.has("sliding_window") && c.flag_or("use_sliding_window", true)) a.window = c.number("sliding_window");
  a.qkv_bias = c.flag_or("attention_bias", false);
  a.out_bias = a.qkv_bias;
  a.qk_norm = qk_norm;
  return a;
}

AttentionSpec latent_attention(const Config& c) {
  AttentionSpec a;
  a.kind = AttentionKind::mla;
  a.heads = c.number("num_attention_heads");
  a.rope_dim = c.number("qk_rope_head_dim");
  a.qk_dim = c.number("qk_nope_head_dim") + a.rope_dim;
  a.v_dim = c.number("v_head_dim");
  a.q_lora_rank = c.number_or("q_lora_rank", 0);
  a.kv_lora_rank = c.number("kv_lora_rank");
  return a;
}

FfnSpec dense(const Config& c) {
  FfnSpec f;
  f.activation = activation_of(c, "silu");
  f.intermediate = c.number("intermediate_size");
  return f;
}

ModelSpec read_llama(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  LayerSpec layer{grouped_query(c, false), dense(c)};
  layer.ffn.bias = c.flag_or("mlp_bias", false);
  set_layers(c, m, layer);
  return m;
}

ModelSpec read_qwen3(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  AttentionSpec a = grouped_query(c, true);
  if (!c.flag_or("use_sliding_window", false)) a.window = 0;
  set_layers(c, m, {a, dense(c)});
  return m;
}

ModelSpec read_mixtral(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  FfnSpec f;
  f.activation = activation_of(c, "silu");
  f.experts = c.number("num_local_experts");
  f.topk = c.number("num_experts_per_tok");
  f.expert_intermediate = c.number("intermediate_size");
  set_layers(c, m, {grouped_query(c, false), f});
  return m;
}

ModelSpec read_qwen3_moe(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  AttentionSpec a = grouped_query(c, true);
  if (!c.flag_or("use_sliding_window", false)) a.window = 0;
  FfnSpec f;
  f.activation = activation_of(c, "silu");
  f.experts = c.number("num_experts");
  f.topk = c.number("num_experts_per_tok");
  f.expert_intermediate = c.number("moe_intermediate_size");
  set_layers(c, m, {a, f});
  if (!c.has("mlp_only_layers")) return m;
  for (std::int64_t layer : c.numbers("mlp_only_layers")) {  // 0-based
    if (layer < 0 || layer >= static_cast<std::int64_t>(m.layers.size())) {
      c.problem("mlp_only_layers", fmt::format("layer {} is outside 0..{}", layer, m.layers.size() - 1));
      continue;
    }
    m.layers[static_cast<std::size_t>(layer)].ffn = dense(c);
  }
  return m;
}

// The first layers are dense; key names differ between the families.
void dense_first(const Config& c, ModelSpec& m) {
  const std::int64_t first = c.number_or("first_k_dense_replace", 0);
  for (std::int64_t l = 0; l < first && l < static_cast<std::int64_t>(m.layers.size()); ++l) {
    m.layers[static_cast<std::size_t>(l)].ffn = dense(c);
  }
}

ModelSpec read_deepseek(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  FfnSpec f;
  f.activation = activation_of(c, "silu");
  f.experts = c.number("n_routed_experts");
  f.topk = c.number("num_experts_per_tok");
  f.expert_intermediate = c.number("moe_intermediate_size");
  f.shared_intermediate = c.number_or("n_shared_experts", 0) * f.expert_intermediate;
  f.groups = c.number_or("n_group", 1);
  f.groups_chosen = c.number_or("topk_group", 1);
  f.selection_bias = c.text_or("topk_method", "noaux_tc") == "noaux_tc";
  set_layers(c, m, {latent_attention(c), f});
  dense_first(c, m);
  return m;
}

AttentionSpec delta_attention(const Config& linear) {
  AttentionSpec a;
  a.kind = AttentionKind::kda;
  a.heads = linear.number("num_heads");
  a.qk_dim = a.v_dim = linear.number("head_dim");
  a.conv_kernel = linear.number("short_conv_kernel_size");
  a.decay_rank = a.qk_dim;
  const bool full = linear.flag_or("use_full_rank_gate", false);
  a.output_gate = full ? GateKind::full : GateKind::low_rank;
  a.gate_rank = full ? 0 : a.qk_dim;
  a.rotary = false;
  return a;
}

void place_attention(const Config& linear, ModelSpec& m, const AttentionSpec& full) {
  std::vector<bool> seen(m.layers.size(), false);
  auto each = [&](const char* key, const auto& act) {
    for (std::int64_t layer : linear.numbers(key)) {  // 1-based
      if (layer < 1 || layer > static_cast<std::int64_t>(m.layers.size())) {
        linear.problem(key, fmt::format("layer {} is outside 1..{}", layer, m.layers.size()));
        continue;
      }
      const auto i = static_cast<std::size_t>(layer - 1);
      if (seen[i]) linear.problem(key, fmt::format("layer {} is listed twice", layer));
      seen[i] = true;
      act(m.layers[i]);
    }
  };
  each("kda_layers", [](LayerSpec&) {});
  each("full_attn_layers", [&full](LayerSpec& layer) { layer.attention = full; });
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) linear.problem("kda_layers", fmt::format("layer {} is in neither list", i + 1));
  }
}

ModelSpec read_kimi_linear(const Config& c) {
  ModelSpec m;
  read_globals(c, m);
  FfnSpec f;
  f.activation = activation_of(c, "silu");
  f.experts = c.number("num_experts");
  f.topk = c.number("num_experts_per_token");
  f.expert_intermediate = c.number("moe_intermediate_size");
  f.shared_intermediate = c.number_or("num_shared_experts", 0) * f.expert_intermediate;
  f.latent = c.number_or("routed_expert_hidden_size", 0);
  f.latent_norm = f.latent > 0 && c.flag_or("latent_moe_use_norm", true);
  f.groups = c.number_or("num_expert_group", 1);
  f.groups_chosen = c.number_or("topk_group", 1);
  f.selection_bias = c.text_or("topk_method", "noaux_tc") == "noaux_tc";
  AttentionSpec mla = latent_attention(c);
  mla.rotary = !c.flag_or("mla_use_nope", false);
  if (c.flag_or("mla_use_output_gate", false)) mla.output_gate = GateKind::full;
  const Config linear = c.section("linear_attn_config");
  set_layers(c, m, {delta_attention(linear), f});
  dense_first(c, m);
  if (!m.layers.empty()) place_attention(linear, m, mla);
  m.attnres_block = c.number_or("attn_res_block_size", 0);
  return m;
}

VisionSpec read_vision(const Config& c) {
  VisionSpec v;
  v.hidden = c.number("vt_hidden_size");
  v.attention_width = c.number_or("qkv_hidden_size", v.hidden);
  v.heads = c.number("vt_num_attention_heads");
  v.ffn = c.number("vt_intermediate_size");
  v.layers = c.number("vt_num_hidden_layers");
  v.patch = c.number("patch_size");
  v.positions = c.number("init_pos_emb_height") * c.number("init_pos_emb_width");
  return v;
}

ModelSpec read_kimi_multimodal(const Config& c) {
  const Config text = c.section("text_config");
  const bool linear = text.has("linear_attn_config");
  ModelSpec m = linear ? read_kimi_linear(text) : read_deepseek(text);
  if (c.has("vision_config")) m.vision = read_vision(c.section("vision_config"));
  return m;
}

struct Family {
  const char* model_type;
  ModelSpec (*read)(const Config&);
};

constexpr Family kFamilies[] = {{"llama", read_llama},
                                {"mixtral", read_mixtral},
                                {"qwen3", read_qwen3},
                                {"qwen3_moe", read_qwen3_moe},
                                {"deepseek_v3", read_deepseek},
                                {"kimi_k2", read_deepseek},
                                {"kimi_linear", read_kimi_linear},
                                {"kimi_k3", read_kimi_multimodal}};

std::string stem_of(const std::string& file) {
  const std::size_t slash = file.find_last_of('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  if (const std::size_t dot = name.rfind(".json"); dot != std::string::npos) name.resize(dot);
  return name.empty() ? "model" : name;
}

}  // namespace

std::vector<std::string> known_hf_model_types() {
  std::vector<std::string> out;
  for (const Family& f : kFamilies) out.emplace_back(f.model_type);
  return out;
}

ModelSpec parse_hf_config(const std::string& json, const std::string& file_name) {
  const Json parsed = Json::parse(json, nullptr, false);
  const Place place{file_name, 0, 0};
  if (parsed.is_discarded() || !parsed.is_object()) throw ConfigError("is not a JSON object", {}, place);
  std::vector<Problem> problems;
  const Config config(parsed, file_name, "", problems);
  const std::string type = config.text_or("model_type", "");
  for (const Family& f : kFamilies) {
    if (type != f.model_type) continue;
    ModelSpec model = f.read(config);
    model.name = stem_of(file_name);
    model.source = fmt::format("Hugging Face config.json, model_type {}", type);
    if (problems.empty()) {
      for (const std::string& what : model_problems(model)) config.problem("", what);
    }
    if (!problems.empty()) throw ConfigError(problems);
    return model;
  }
  const std::vector<std::string> known = known_hf_model_types();
  config.problem("model_type",
                 type.empty() ? std::string("is missing; known: ") + fmt::format("{}", fmt::join(known, ", "))
                              : fmt::format("'{}' is not supported; known: {}", type, fmt::join(known, ", ")),
                 did_you_mean(type, known));
  throw ConfigError(problems);
}

ModelSpec load_hf_config(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw ConfigError("cannot be read", {}, Place{path, 0, 0});
  std::ostringstream text;
  text << in.rdbuf();
  return parse_hf_config(text.str(), path);
}

}  // namespace k3sim
