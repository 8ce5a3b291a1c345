// Prints the audit; see model_command.h. Bytes: weights in BF16, gradients in FP32, experts also in MXFP4 (block 32
// with one scale byte: 17/32 B per value); kept tensors are those of one layer of each kind per token, fused stack.
// Source: k3-facts section 1.5.
#include "tools/commands/model_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

double as_d(std::int64_t v) {
  return static_cast<double>(v);
}

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

// One layer of every distinct pair of attention kind and feed-forward kind.
struct LayerKind {
  std::string name;
  std::size_t index = 0;
  std::int64_t count = 0;
  std::int64_t saved_per_token = 0;
  std::vector<std::pair<std::string, std::int64_t>> tensors;  // bytes per token
};

std::string kind_name(const LayerSpec& layer) {
  const AttentionKind kind = layer.attention.kind;
  const char* attention = kind == AttentionKind::kda ? "kda" : kind == AttentionKind::mla ? "mla" : "attention";
  return fmt::format("{}+{}", attention, layer.ffn.is_moe() ? "moe" : "dense");
}

std::vector<LayerKind> layer_kinds(const ModelSpec& model, std::int64_t sequence) {
  std::vector<LayerKind> out;
  SplitConfig split;
  split.tokens = split.sequence = sequence;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::string name = kind_name(model.layers[l]);
    const auto it = std::find_if(out.begin(), out.end(), [&](const LayerKind& k) { return k.name == name; });
    if (it != out.end()) {
      ++it->count;
      continue;
    }
    LayerKind kind{name, l, 1, 0, {}};
    for (const SavedTensor& t : layer_program(model, l, split).saved) {
      kind.tensors.emplace_back(t.name, t.bytes.count() / sequence);
      kind.saved_per_token += t.bytes.count() / sequence;
    }
    out.push_back(std::move(kind));
  }
  return out;
}

struct Quantity {
  const char* key;
  const char* text;
  double bytes;
};

std::vector<Quantity> byte_table(const ModelSpec& model, const ModelAudit& counts) {
  std::vector<Quantity> out = {{"hidden_row", "hidden row, BF16", 2 * as_d(model.hidden)}};
  const LayerSpec* moe = nullptr;
  const AttentionSpec* kda = nullptr;
  const AttentionSpec* mla = nullptr;
  for (const LayerSpec& layer : model.layers) {
    if (layer.ffn.is_moe()) moe = &layer;
    if (layer.attention.kind == AttentionKind::kda) kda = &layer.attention;
    if (layer.attention.kind == AttentionKind::mla) mla = &layer.attention;
  }
  if (moe != nullptr) {
    const FfnSpec& f = moe->ffn;
    const double width = as_d(f.latent > 0 ? f.latent : model.hidden);
    const double expert = (is_gated(f.activation) ? 3 : 2) * width * as_d(f.expert_intermediate);
    if (f.latent > 0) out.push_back({"latent_row", "latent row, BF16", 2 * width});
    out.push_back({"expert_bf16", "one expert, BF16", 2 * expert});
    out.push_back({"expert_gradient_fp32", "one expert's gradient, FP32", 4 * expert});
    out.push_back({"expert_mxfp4", "one expert, MXFP4", expert * 17 / 32});
    out.push_back({"layer_experts_bf16", "experts of one layer, BF16", 2 * expert * as_d(f.experts)});
  }
  if (kda != nullptr) {
    out.push_back(
        {"kda_state_fp32", "KDA state per sequence and layer, FP32", 4 * as_d(kda->heads * kda->qk_dim * kda->v_dim)});
  }
  if (mla != nullptr) {
    out.push_back({"mla_latent", "MLA latent per token and layer, BF16", 2 * as_d(mla->kv_lora_rank + mla->rope_dim)});
  }
  out.push_back({"weights_bf16", "whole model, BF16", 2 * as_d(counts.total_parameters)});
  out.push_back({"weights_and_gradients", "with FP32 gradients", 6 * as_d(counts.total_parameters)});
  return out;
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3f} {}", bytes, kUnits[unit]);
}

Json audit_json(const ModelSpec& model, const ModelAudit& counts, std::int64_t sequence) {
  Json out;
  out["model"] = model.name;
  out["total_parameters"] = counts.total_parameters;
  out["active_parameters"] = counts.active_parameters;
  out["components"] = Json::array();
  for (const ComponentCount& c : counts.components) {
    out["components"].push_back({{"name", c.name},
                                 {"count", c.count},
                                 {"parameters", c.parameters},
                                 {"forward_flops_per_token", c.forward_flops_per_token.value()},
                                 {"weight_bytes", 2 * c.parameters}});
  }
  out["sequence"] = sequence;
  out["forward_flops_per_token"] = {{"causal", model_flops_per_token(model, sequence).value()},
                                    {"full", model_flops_per_token(model, sequence, FlopConvention::full).value()},
                                    {"six_n", model_flops_per_token(model, sequence, FlopConvention::six_n).value()}};
  for (const Quantity& q : byte_table(model, counts)) out["bytes"][q.key] = q.bytes;
  out["kept_bytes_per_token"] = Json::array();
  for (const LayerKind& kind : layer_kinds(model, sequence)) {
    Json tensors = Json::object();
    for (const auto& [name, bytes] : kind.tensors) tensors[name] = tensors.value(name, std::int64_t{0}) + bytes;
    out["kept_bytes_per_token"].push_back(
        {{"layer", kind.name}, {"count", kind.count}, {"bytes", kind.saved_per_token}, {"tensors", tensors}});
  }
  return out;
}

void print_audit(const ModelSpec& model, const ModelAudit& counts, const ModelCommandOptions& options,
                 std::int64_t sequence, std::ostream& out) {
  out << fmt::format("{}: {} layers, hidden {}, vocabulary {}\n{}\n\n", model.name, model.layers.size(), model.hidden,
                     model.vocab, model.source);
  TextTable table(
      {"component", "count", "parameters (one)", "total (B)", "share", "MFLOP/token (one)", "weights BF16"});
  for (const ComponentCount& c : counts.components) {
    const double total = as_d(c.count * c.parameters);
    table.add({c.name, fmt::format("{}", c.count), grouped(c.parameters), fmt::format("{:.3f}", total / 1e9),
               fmt::format("{:.2f} %", 100 * total / as_d(counts.total_parameters)),
               fmt::format("{:.1f}", c.forward_flops_per_token.value() / 1e6), bytes_text(2 * total)});
  }
  out << table.to_text(options.colour);
  out << fmt::format("\ntotal parameters   {}\nactive parameters  {} (output head counted, embedding not)\n",
                     grouped(counts.total_parameters), grouped(counts.active_parameters));
  const auto gflop = [&](FlopConvention c) { return 3e-9 * model_flops_per_token(model, sequence, c).value(); };
  out << fmt::format(
      "training FLOPs per token at {} tokens: {:.1f} G (causal attention at half), {:.1f} G (full), "
      "{:.1f} G (6N)\n\n",
      grouped(sequence), gflop(FlopConvention::causal), gflop(FlopConvention::full), gflop(FlopConvention::six_n));
  TextTable bytes({"quantity", "bytes"});
  for (const Quantity& q : byte_table(model, counts)) bytes.add({q.text, bytes_text(q.bytes)});
  out << bytes.to_text(options.colour) << '\n';
  for (const LayerKind& kind : layer_kinds(model, sequence)) {
    out << fmt::format("kept for backward, {} layer ({} of them): {} B per token\n", kind.name, kind.count,
                       grouped(kind.saved_per_token));
    TextTable kept({"  tensor", "B per token"});
    for (const auto& [name, size] : kind.tensors) kept.add({"  " + name, grouped(size)});
    out << kept.to_text(options.colour) << '\n';
  }
}

}  // namespace

void run_model_command(const ModelCommandOptions& options, std::ostream& out) {
  const ModelSpec model = load_model(options.model);
  if (options.sequence < 0 || options.sequence > model.max_positions) {
    throw ConfigError(fmt::format("{} tokens; {} takes 1 to {}", options.sequence, model.name, model.max_positions),
                      "--sequence");
  }
  const std::int64_t sequence =
      options.sequence > 0 ? options.sequence : std::min<std::int64_t>(8192, model.max_positions);
  const ModelAudit counts = audit(model);
  if (options.json)
    out << audit_json(model, counts, sequence).dump() << '\n';
  else
    print_audit(model, counts, options, sequence, out);
}

void add_model_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "model", "parameters, FLOPs and bytes of a model", "k3sim model kimi_k3");
  const auto options = std::make_shared<ModelCommandOptions>();
  command->add_option("model", options->model, "name in models/zoo, YAML file or Hugging Face config.json")->required();
  command->add_option("--sequence", options->sequence, "document length for the attention FLOPs (default 8192)");
  add_json_flag(*command, context);
  command->callback([options, &context] {
    options->json = context.json;
    options->colour = context.colour();
    run_model_command(*options, context.out);
  });
}

}  // namespace k3sim
