// Single modules for `validate --kind stack`; see modules.h.
// Source: measurements README (how the modules were built).
#include "models/transformer/modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/transformer/counts.h"
#include "models/transformer/parts.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

// The first layer of the model with an attention of that kind, its experts cut down to the local ones.
LayerSpec sample_layer(const ModelSpec& model, AttentionKind kind, const ModuleOptions& options) {
  LayerSpec out;
  for (const LayerSpec& layer : model.layers) {
    if (layer.attention.kind != kind) continue;
    out = layer;
    if (layer.ffn.is_moe()) break;
  }
  if (out.ffn.is_moe()) {
    out.ffn.experts = options.local_experts;
    out.ffn.selection_bias = false;
  }
  return out;
}

// The measured two-GPU module: plain SwiGLU experts between latent projections, nothing else.
FfnSpec exchanged_experts(FfnSpec f) {
  f.activation = Activation::swiglu;
  f.latent_norm = false;
  f.shared_intermediate = 0;
  return f;
}

FfnSpec dense_ffn(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    if (!layer.ffn.is_moe()) return layer.ffn;
  }
  throw ConfigError(fmt::format("model {} has no dense feed-forward layer", model.name), "module");
}

AttentionKind kind_of(const std::string& name) {
  if (name.rfind("mla", 0) == 0) return AttentionKind::mla;
  if (name.rfind("llama", 0) == 0) return AttentionKind::mha;
  return AttentionKind::kda;
}

bool is_block(const std::string& name) {
  return name.size() > 6 && name.compare(name.size() - 6, 6, "_block") == 0;
}

void check_name(const std::string& name) {
  const std::vector<std::string> known = known_modules();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw ConfigError({Problem{{},
                             "module",
                             fmt::format("no module '{}'; known: {}", name, fmt::join(known, ", ")),
                             did_you_mean(name, known)}});
}

}  // namespace

std::vector<std::string> known_modules() {
  return {"kda",         "mla",       "latent_moe", "dense",         "attnres_mix",
          "llama_block", "kda_block", "mla_block",  "ep2_latent_moe"};
}

LayerProgram module_program(const ModelSpec& model, const std::string& name, std::int64_t tokens,
                            const ModuleOptions& options) {
  check_name(name);
  ModelSpec plain = model;
  plain.attnres_block = 0;
  SplitConfig split;
  split.tokens = split.sequence = tokens;
  split.fusion = 0;
  LayerGraph graph;
  LayerContext ctx{plain, split, graph, !options.first_gradients};
  const FinishOptions finish{options.gradient_held, options.first_gradients};
  const Node x = graph.input(tensor_bytes(tokens, model.hidden));
  if (name == "attnres_mix") return graph.finish(attnres_mix(ctx, x, options.sources, "attnres.sum"), finish);
  if (name == "dense") return graph.finish(dense_ffn_block(ctx, dense_ffn(model), x), finish);
  LayerSpec layer = sample_layer(model, kind_of(name), options);
  if (name == "ep2_latent_moe") {
    split.ep = 2;
    const FfnSpec experts = exchanged_experts(layer.ffn);
    return graph.finish(exchanged_experts_block(ctx, experts, x), finish);
  }
  layer.attention.rotary = false;  // the measured blocks apply no rotation
  if (name == "latent_moe") return graph.finish(moe_block(ctx, layer.ffn, x), finish);
  if (is_block(name)) return graph.finish(decoder_layer(ctx, layer, 1, x), finish);
  return graph.finish(attention_block(ctx, layer.attention, x), finish);
}

std::int64_t module_parameters(const ModelSpec& model, const std::string& name, const ModuleOptions& options) {
  check_name(name);
  if (name == "attnres_mix") return 2 * model.hidden;
  if (name == "dense") return dense_ffn_weights(model, dense_ffn(model)).total();
  const LayerSpec layer = sample_layer(model, kind_of(name), options);
  const FfnSpec& f = layer.ffn;
  if (name == "ep2_latent_moe") {
    return latent_weights(model, exchanged_experts(f)).total() + f.experts / 2 * expert_weights(model, f);
  }
  const std::int64_t attention = attention_weights(model, layer.attention).total();
  std::int64_t ffn = dense_ffn_weights(model, f).total();
  if (f.is_moe()) {
    ffn = f.experts * expert_weights(model, f) + router_weights(model, f).total() + latent_weights(model, f).total() +
          shared_expert_weights(model, f).total();
  }
  if (name == "latent_moe") return ffn;
  return is_block(name) ? attention + ffn + 2 * norm_weights(model) : attention;
}

Bytes chain_peak_growth(const ModelSpec& model, const std::vector<std::string>& chain, std::int64_t tokens,
                        const ModuleOptions& options) {
  const Bytes row = tensor_bytes(tokens, model.hidden);
  std::vector<Bytes> growth;
  Bytes kept{0};
  bool input_kept = false;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    ModuleOptions own = options;
    own.gradient_held = i + 1 == chain.size();
    const LayerProgram program = module_program(model, chain[i], tokens, own);
    if (i == 0) input_kept = !program.saved.empty() && !program.saved.front().recomputable;
    for (const SavedTensor& t : program.saved) kept += t.bytes;
    growth.push_back(kept + program.workspace + (own.gradient_held ? Bytes{0} : row));
  }
  Bytes gradients{0}, peak{0};
  for (std::size_t i = chain.size(); i-- > 0;) {
    const Bytes own(2 * module_parameters(model, chain[i], options));
    if (!options.first_gradients)
      gradients += own;
    else
      growth[i] += gradients;
    peak = std::max(peak, growth[i]);
    if (options.first_gradients) gradients += own;
  }
  if (!options.first_gradients) peak += gradients;
  // The chain's input and the gradient of its output exist beforehand; its output is held while backward runs.
  const Bytes before = input_kept ? row * 2 : row;
  return peak - before + row;
}

}  // namespace k3sim
