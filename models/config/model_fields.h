// The one list of YAML keys of attention and ffn entries, used by reader and writer alike. Each visitor call names a
// key and the field it fills. Source: model_spec.h. `Spec` may be const (writing).
#pragma once

#include "models/config/model_spec.h"

namespace k3sim {

template <class Spec, class Visit>
void visit_attention_numbers(Spec& a, const Visit& visit) {
  visit("heads", a.heads);
  visit("kv_heads", a.kv_heads);
  visit("qk_dim", a.qk_dim);
  visit("v_dim", a.v_dim);
  visit("q_lora_rank", a.q_lora_rank);
  visit("kv_lora_rank", a.kv_lora_rank);
  visit("rope_dim", a.rope_dim);
  visit("conv_kernel", a.conv_kernel);
  visit("decay_rank", a.decay_rank);
  visit("gate_rank", a.gate_rank);
  visit("window", a.window);
}

template <class Spec, class Visit>
void visit_attention_switches(Spec& a, const Visit& visit) {
  visit("rotary", a.rotary);
  visit("qkv_bias", a.qkv_bias);
  visit("out_bias", a.out_bias);
  visit("qk_norm", a.qk_norm);
}

template <class Spec, class Visit>
void visit_ffn_numbers(Spec& f, const Visit& visit) {
  visit("intermediate", f.intermediate);
  visit("experts", f.experts);
  visit("topk", f.topk);
  visit("expert_intermediate", f.expert_intermediate);
  visit("latent", f.latent);
  visit("shared_intermediate", f.shared_intermediate);
  visit("groups", f.groups);
  visit("groups_chosen", f.groups_chosen);
}

template <class Spec, class Visit>
void visit_ffn_switches(Spec& f, const Visit& visit) {
  visit("bias", f.bias);
  visit("latent_norm", f.latent_norm);
  visit("shared_gate", f.shared_gate);
  visit("selection_bias", f.selection_bias);
}

template <class Spec, class Visit>
void visit_vision(Spec& v, const Visit& visit) {
  visit("hidden", v.hidden);
  visit("attention_width", v.attention_width);
  visit("heads", v.heads);
  visit("ffn", v.ffn);
  visit("layers", v.layers);
  visit("patch", v.patch);
  visit("positions", v.positions);
}

}  // namespace k3sim
