// torchtitan's model flavours: names of the zoo where the dimensions are there, else the dimensions.
// Source: torchtitan models/{llama3,deepseek_v3,qwen3}/__init__.py, models/llama (Llama 2 flavours).
#include <algorithm>

#include "models/config/model_loader.h"
#include "tools/import/torchtitan_models.h"

namespace k3sim {
namespace {

struct Dense {
  const char *family, *flavor;
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab;
  bool qk_norm;
};
constexpr Dense kDense[] = {{"llama3", "debugmodel", 6, 256, 16, 16, 768, 2048, false},
                            {"llama3", "1B", 16, 2048, 32, 8, 8192, 128256, false},
                            {"llama3", "3B", 28, 3072, 24, 8, 8192, 128256, false},
                            {"llama2", "7B", 32, 4096, 32, 32, 11008, 32000, false},
                            {"llama2", "13B", 40, 5120, 40, 40, 13824, 32000, false},
                            {"llama2", "26B", 80, 5120, 40, 40, 13824, 32000, false},
                            {"llama2", "70B", 80, 8192, 64, 8, 28672, 32000, false},
                            {"qwen3", "0.6B", 28, 1024, 16, 8, 3072, 151936, true},
                            {"qwen3", "1.7B", 28, 2048, 16, 8, 6144, 151936, true},
                            {"qwen3", "4B", 36, 2560, 32, 8, 9728, 151936, true},
                            {"qwen3", "8B", 36, 4096, 32, 8, 12288, 151936, true},
                            {"qwen3", "14B", 40, 5120, 40, 8, 17408, 151936, true},
                            {"qwen3", "32B", 64, 5120, 64, 8, 25600, 151936, true}};

struct Named {
  const char *family, *flavor, *zoo;
};
constexpr Named kNamed[] = {{"llama3", "8B", "llama3_8b"},         {"llama3", "70B", "llama3_70b"},
                            {"llama3", "405B", "llama3_405b"},     {"deepseek_v3", "671B", "deepseek_v3"},
                            {"qwen3", "30B-A3B", "qwen3_30b_a3b"}, {"qwen3", "235B-A22B", "qwen3_235b_a22b"}};

struct Mixture {
  const char* flavor;
  std::int64_t layers, hidden, heads, q_rank, ffn, expert_ffn, experts, topk, shared, dense_layers;
};
constexpr Mixture kDeepseek[] = {{"debugmodel", 6, 256, 16, 0, 1024, 256, 8, 3, 2, 1},
                                 {"16B", 27, 2048, 16, 0, 10944, 1408, 64, 6, 2, 1},
                                 {"236B", 60, 5120, 128, 1536, 12288, 1536, 160, 6, 2, 1}};

ModelSpec dense_model(const Dense& d) {
  ModelSpec m;
  m.hidden = d.hidden;
  m.vocab = d.vocab;
  LayerSpec layer;
  layer.attention.heads = d.heads;
  layer.attention.kv_heads = d.kv_heads;
  layer.attention.qk_dim = layer.attention.v_dim = std::string(d.family) == "qwen3" ? 128 : d.hidden / d.heads;
  layer.attention.qk_norm = d.qk_norm;
  layer.ffn.intermediate = d.ffn;
  m.layers.assign(static_cast<std::size_t>(d.layers), layer);
  return m;
}

ModelSpec deepseek_model(const Mixture& d) {
  ModelSpec m;
  m.hidden = d.hidden;
  m.vocab = 102400;
  LayerSpec layer;
  layer.attention = {.kind = AttentionKind::mla,
                     .heads = d.heads,
                     .qk_dim = 192,
                     .v_dim = 128,
                     .q_lora_rank = d.q_rank,
                     .kv_lora_rank = 512,
                     .rope_dim = 64};
  layer.ffn.intermediate = d.ffn;
  m.layers.assign(static_cast<std::size_t>(d.layers), layer);
  for (auto it = m.layers.begin() + d.dense_layers; it != m.layers.end(); ++it) {
    it->ffn.intermediate = 0;
    it->ffn.experts = d.experts;
    it->ffn.topk = d.topk;
    it->ffn.expert_intermediate = d.expert_ffn;
    it->ffn.shared_intermediate = d.shared * d.expert_ffn;
  }
  return m;
}

}  // namespace

std::optional<TorchtitanModel> torchtitan_model(const std::string& family, const std::string& flavor) {
  for (const Named& n : kNamed)
    if (family == n.family && flavor == n.flavor) return TorchtitanModel{n.zoo, load_model(n.zoo)};
  const auto finish = [&](ModelSpec m) {
    m.name = family + "_" + flavor;
    m.source = "torchtitan flavour " + family + " " + flavor;
    m.max_positions = 131072;
    return TorchtitanModel{"", std::move(m)};
  };
  for (const Dense& d : kDense)
    if (family == d.family && flavor == d.flavor) return finish(dense_model(d));
  if (family == "deepseek_v3")
    for (const Mixture& d : kDeepseek)
      if (flavor == d.flavor) return finish(deepseek_model(d));
  return std::nullopt;
}

std::vector<std::string> torchtitan_flavors(const std::string& family) {
  std::vector<std::string> out;
  for (const Named& n : kNamed)
    if (family == n.family) out.emplace_back(n.flavor);
  for (const Dense& d : kDense)
    if (family == d.family) out.emplace_back(d.flavor);
  if (family == "deepseek_v3")
    for (const Mixture& d : kDeepseek) out.emplace_back(d.flavor);
  return out;
}

}  // namespace k3sim
