// Zoo YAML -> ModelSpec. Every mistake of a file is reported at once, with its place; see model_loader.h for the form.
// Source: product-spec section 2 (errors).
#include "models/config/model_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/config/data_files.h"
#include "models/config/hf_config.h"
#include "models/config/model_fields.h"
#include "models/config/yaml_reader.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

template <class Enum>
struct Word {
  const char* text;
  Enum value;
};

constexpr Word<AttentionKind> kKinds[] = {
    {"mha", AttentionKind::mha}, {"mla", AttentionKind::mla}, {"kda", AttentionKind::kda}};
constexpr Word<GateKind> kGates[] = {
    {"none", GateKind::none}, {"low_rank", GateKind::low_rank}, {"full", GateKind::full}};
constexpr Word<Activation> kActivations[] = {{"gelu", Activation::gelu},
                                             {"squared_relu", Activation::squared_relu},
                                             {"swiglu", Activation::swiglu},
                                             {"situ_glu", Activation::situ_glu}};
constexpr Word<NormKind> kNorms[] = {{"rms_norm", NormKind::rms_norm}, {"layer_norm", NormKind::layer_norm}};

template <class Enum, std::size_t N>
void read_word(const YamlNode& node, const char* key, const Word<Enum> (&words)[N], Enum& out) {
  std::string text;
  if (!node.read(key, text)) return;
  std::vector<std::string> known;
  for (const Word<Enum>& w : words) {
    if (text == w.text) {
      out = w.value;
      return;
    }
    known.emplace_back(w.text);
  }
  node.child(key).problem(fmt::format("'{}' is not one of {}", text, fmt::join(known, ", ")),
                          did_you_mean(text, known));
}

template <class Enum, std::size_t N>
const char* word_of(const Word<Enum> (&words)[N], Enum value) {
  for (const Word<Enum>& w : words) {
    if (w.value == value) return w.text;
  }
  return "?";
}

// A visitor that reads numbers (none may be negative) or switches of a map.
auto reader_of(const YamlNode& node) {
  return [&node](const char* key, auto& value) {
    if (!node.read(key, value)) return;
    if (value < decltype(+value){0}) node.child(key).problem("must not be negative");
  };
}

AttentionSpec read_attention(const YamlNode& node) {
  AttentionSpec a;
  read_word(node, "kind", kKinds, a.kind);
  visit_attention_numbers(a, reader_of(node));
  visit_attention_switches(a, [&node](const char* key, bool& value) { node.read(key, value); });
  read_word(node, "output_gate", kGates, a.output_gate);
  if (a.kind == AttentionKind::mha && a.kv_heads == 0) a.kv_heads = a.heads;
  if (a.v_dim == 0) a.v_dim = a.qk_dim;
  return a;
}

FfnSpec read_ffn(const YamlNode& node) {
  FfnSpec f;
  read_word(node, "activation", kActivations, f.activation);
  visit_ffn_numbers(f, reader_of(node));
  visit_ffn_switches(f, [&node](const char* key, bool& value) { node.read(key, value); });
  return f;
}

template <class T>
const T* find_label(const YamlNode& node, const char* key, const std::map<std::string, T>& known) {
  std::string label;
  if (!node.read(key, label)) return nullptr;
  const auto it = known.find(label);
  if (it != known.end()) return &it->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.push_back(name);
  node.child(key).problem(fmt::format("no entry '{}' is defined", label), did_you_mean(label, names));
  return nullptr;
}

struct Labels {
  std::map<std::string, AttentionSpec> attention;
  std::map<std::string, FfnSpec> ffn;
};

void read_exceptions(const YamlNode& layers, const Labels& labels, ModelSpec& model) {
  for (const YamlNode& entry : layers.child("exceptions").items()) {
    std::vector<std::int64_t> numbers;
    entry.require("layers", numbers);
    const AttentionSpec* a = find_label(entry, "attention", labels.attention);
    const FfnSpec* f = find_label(entry, "ffn", labels.ffn);
    for (std::int64_t number : numbers) {
      if (number < 1 || number > static_cast<std::int64_t>(model.layers.size())) {
        entry.child("layers").problem(fmt::format("layer {} is outside 1..{}", number, model.layers.size()));
        continue;
      }
      LayerSpec& layer = model.layers[static_cast<std::size_t>(number - 1)];
      if (a != nullptr) layer.attention = *a;
      if (f != nullptr) layer.ffn = *f;
    }
  }
}

void read_layers(const YamlNode& root, ModelSpec& model) {
  Labels labels;
  for (const YamlNode& entry : root.child("attention").entries())
    labels.attention[entry.name()] = read_attention(entry);
  for (const YamlNode& entry : root.child("ffn").entries()) labels.ffn[entry.name()] = read_ffn(entry);
  const YamlNode layers = root.child("layers");
  std::int64_t count = 0;
  layers.require("count", count);
  if (count < 1 || count > 10000) {
    layers.child("count").problem(fmt::format("{} layers; must be between 1 and 10000", count));
    count = 1;
  }
  for (const char* key : {"attention", "ffn"}) {
    std::string label;
    layers.require(key, label);
  }
  LayerSpec usual;
  if (const AttentionSpec* a = find_label(layers, "attention", labels.attention)) usual.attention = *a;
  if (const FfnSpec* f = find_label(layers, "ffn", labels.ffn)) usual.ffn = *f;
  model.layers.assign(static_cast<std::size_t>(count), usual);
  read_exceptions(layers, labels, model);
}

ModelSpec read_model(const YamlDocument& document) {
  const YamlNode root = document.root();
  ModelSpec model = read_model_section(root);
  if (document.problems().empty()) {
    for (const std::string& what : model_problems(model)) root.problem(what);
  }
  document.finish();
  return model;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// --- writing ---

template <class T>
std::size_t label_index(std::vector<T>& seen, const T& value) {
  const auto it = std::find(seen.begin(), seen.end(), value);
  if (it != seen.end()) return static_cast<std::size_t>(it - seen.begin());
  seen.push_back(value);
  return seen.size() - 1;
}

std::string attention_text(const AttentionSpec& a) {
  std::string text = fmt::format("{{kind: {}", word_of(kKinds, a.kind));
  visit_attention_numbers(a, [&text](const char* key, std::int64_t value) {
    if (value != 0) text += fmt::format(", {}: {}", key, value);
  });
  if (a.output_gate != GateKind::none) text += fmt::format(", output_gate: {}", word_of(kGates, a.output_gate));
  const AttentionSpec usual;
  if (a.rotary != usual.rotary) text += ", rotary: false";
  visit_attention_switches(a, [&text](const char* key, bool value) {
    if (value && std::string(key) != "rotary") text += fmt::format(", {}: true", key);
  });
  return text + "}";
}

std::string ffn_text(const FfnSpec& f) {
  std::string text = fmt::format("{{activation: {}", word_of(kActivations, f.activation));
  visit_ffn_numbers(f, [&text](const char* key, std::int64_t value) {
    const bool group_default = std::string(key).rfind("groups", 0) == 0 && value == 1;
    if (value != 0 && !group_default) text += fmt::format(", {}: {}", key, value);
  });
  visit_ffn_switches(f, [&text](const char* key, bool value) {
    if (value) text += fmt::format(", {}: true", key);
  });
  return text + "}";
}

// Distinct entries in order of first use, and which of them every layer uses.
struct LayerTable {
  std::vector<std::string> entries;
  std::vector<std::size_t> of_layer;
  std::size_t usual = 0;  // the most frequent; ties go to the earlier entry
};

LayerTable table_of(const std::vector<std::string>& texts) {
  LayerTable table;
  for (const std::string& text : texts) table.of_layer.push_back(label_index(table.entries, text));
  std::vector<std::size_t> uses(table.entries.size(), 0);
  for (std::size_t i : table.of_layer) ++uses[i];
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i] > uses[table.usual]) table.usual = i;
  }
  return table;
}

std::string exceptions_text(const LayerTable& table, const char* key) {
  std::string text;
  for (std::size_t entry = 0; entry < table.entries.size(); ++entry) {
    if (entry == table.usual) continue;
    std::vector<std::size_t> layers;
    for (std::size_t l = 0; l < table.of_layer.size(); ++l) {
      if (table.of_layer[l] == entry) layers.push_back(l + 1);
    }
    text += fmt::format("    - {{layers: [{}], {}: {}_{}}}\n", fmt::join(layers, ", "), key, key, entry + 1);
  }
  return text;
}

std::string definitions_text(const LayerTable& table, const char* key) {
  std::string text = fmt::format("{}:\n", key);
  for (std::size_t i = 0; i < table.entries.size(); ++i)
    text += fmt::format("  {}_{}: {}\n", key, i + 1, table.entries[i]);
  return text;
}

}  // namespace

std::string model_to_yaml(const ModelSpec& m) {
  std::vector<std::string> attention, ffn;
  for (const LayerSpec& layer : m.layers) {
    attention.push_back(attention_text(layer.attention));
    ffn.push_back(ffn_text(layer.ffn));
  }
  const LayerTable a = table_of(attention), f = table_of(ffn);
  std::string text = fmt::format("name: {}\nsource: \"{}\"\nhidden: {}\nvocab: {}\nmax_positions: {}\n", m.name,
                                 m.source, m.hidden, m.vocab, m.max_positions);
  text += fmt::format("norm: {}\n", word_of(kNorms, m.norm));
  if (m.norm_bias) text += "norm_bias: true\n";
  if (m.learned_positions) text += "learned_positions: true\n";
  if (m.tied_embeddings) text += "tied_embeddings: true\n";
  if (m.attnres_block > 0) text += fmt::format("attnres_block: {}\n", m.attnres_block);
  if (m.mtp_layers > 0) text += fmt::format("mtp_layers: {}\n", m.mtp_layers);
  text += definitions_text(a, "attention") + definitions_text(f, "ffn");
  text += fmt::format("layers:\n  count: {}\n  attention: attention_{}\n  ffn: ffn_{}\n", m.layers.size(), a.usual + 1,
                      f.usual + 1);
  const std::string exceptions = exceptions_text(a, "attention") + exceptions_text(f, "ffn");
  if (!exceptions.empty()) text += "  exceptions:\n" + exceptions;
  if (!m.vision.present()) return text;
  text += "vision:\n";
  visit_vision(m.vision,
               [&text](const char* key, std::int64_t value) { text += fmt::format("  {}: {}\n", key, value); });
  return text;
}

ModelSpec read_model_section(const YamlNode& root) {
  ModelSpec model;
  root.require("name", model.name);
  root.require("source", model.source);
  root.require("hidden", model.hidden);
  root.require("vocab", model.vocab);
  root.require("max_positions", model.max_positions);
  root.read("learned_positions", model.learned_positions);
  root.read("tied_embeddings", model.tied_embeddings);
  read_word(root, "norm", kNorms, model.norm);
  root.read("norm_bias", model.norm_bias);
  root.read("attnres_block", model.attnres_block);
  root.read("mtp_layers", model.mtp_layers);
  read_layers(root, model);
  const YamlNode vision = root.child("vision");
  if (vision.present()) visit_vision(model.vision, reader_of(vision));
  return model;
}

std::vector<std::string> known_models() {
  return known_names("models/zoo");
}

ModelSpec parse_model(const std::string& yaml, const std::string& file_name) {
  return read_model(YamlDocument::parse(yaml, file_name));
}

ModelSpec load_model(const std::string& name_or_path) {
  if (ends_with(name_or_path, ".json")) return load_hf_config(name_or_path);
  const bool path = name_or_path.find('/') != std::string::npos || ends_with(name_or_path, ".yaml") ||
                    ends_with(name_or_path, ".yml");
  if (path) return read_model(YamlDocument::load(name_or_path));
  const std::vector<std::string> known = known_models();
  if (std::find(known.begin(), known.end(), name_or_path) == known.end()) {
    Problem p;
    p.key = "model";
    p.what = fmt::format("no model '{}' in models/zoo and no such file", name_or_path);
    p.hint = did_you_mean(name_or_path, known);
    throw ConfigError(std::vector<Problem>{p});
  }
  return read_model(YamlDocument::load(data_path("models/zoo/" + name_or_path + ".yaml")));
}

}  // namespace k3sim
