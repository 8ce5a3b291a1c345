// Consistency of a model specification: what the layer programs rely on. Reported as user mistakes by the loaders.
// Source: model_spec.h (meaning of the fields).
#include <fmt/format.h>

#include "models/config/model_loader.h"

namespace k3sim {
namespace {

using Problems = std::vector<std::string>;

void check_positive(Problems& out, const std::string& where, const char* key, std::int64_t value) {
  if (value < 1) out.push_back(fmt::format("{}: {} is {}; must be at least 1", where, key, value));
}

void check_attention(Problems& out, const std::string& where, const AttentionSpec& a) {
  check_positive(out, where, "heads", a.heads);
  check_positive(out, where, "qk_dim", a.qk_dim);
  check_positive(out, where, "v_dim", a.v_dim);
  if (a.kind == AttentionKind::mha) {
    check_positive(out, where, "kv_heads", a.kv_heads);
    if (a.kv_heads > 0 && a.heads % a.kv_heads != 0) {
      out.push_back(fmt::format("{}: {} heads are not a multiple of {} kv_heads", where, a.heads, a.kv_heads));
    }
  }
  if (a.kind == AttentionKind::mla) {
    check_positive(out, where, "kv_lora_rank", a.kv_lora_rank);
    if (a.rope_dim >= a.qk_dim) {
      out.push_back(fmt::format("{}: rope_dim {} leaves nothing of qk_dim {}", where, a.rope_dim, a.qk_dim));
    }
  }
  if (a.kind == AttentionKind::kda) {
    check_positive(out, where, "conv_kernel", a.conv_kernel);
    check_positive(out, where, "decay_rank", a.decay_rank);
  }
  if (a.output_gate == GateKind::low_rank) check_positive(out, where, "gate_rank", a.gate_rank);
}

void check_ffn(Problems& out, const std::string& where, const FfnSpec& f) {
  if (!f.is_moe()) {
    check_positive(out, where, "intermediate", f.intermediate);
    return;
  }
  check_positive(out, where, "topk", f.topk);
  check_positive(out, where, "expert_intermediate", f.expert_intermediate);
  if (f.topk > f.experts) out.push_back(fmt::format("{}: topk {} of {} experts", where, f.topk, f.experts));
  if (f.groups < 1 || f.experts % f.groups != 0) {
    out.push_back(fmt::format("{}: {} experts are not a multiple of {} groups", where, f.experts, f.groups));
  }
  if (f.groups_chosen > f.groups) {
    out.push_back(fmt::format("{}: {} of {} groups chosen", where, f.groups_chosen, f.groups));
  }
}

}  // namespace

std::vector<std::string> model_problems(const ModelSpec& model) {
  Problems out;
  check_positive(out, "model", "hidden", model.hidden);
  check_positive(out, "model", "vocab", model.vocab);
  check_positive(out, "model", "max_positions", model.max_positions);
  if (model.layers.empty()) out.push_back("model: no layers");
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::string where = fmt::format("layer {}", i + 1);
    check_attention(out, where, model.layers[i].attention);
    check_ffn(out, where, model.layers[i].ffn);
    if (out.size() > 8) break;  // the same entry is wrong in every layer
  }
  return out;
}

}  // namespace k3sim
