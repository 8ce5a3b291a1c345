// Times every distinct layer of a model once. Source: engine-design section 9 (read-only caches built beforehand).
#include "models/build/layer_set.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "models/build/activation_policy.h"
#include "models/build/pair_actions.h"
#include "models/build/routed_layer.h"
#include "models/build/split_config.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

LayerSet::LayerSet(const Scenario& s, const Machine& machine, const Placement& placement, CommCoster comm,
                   MoeEffectsCache* known)
    : split_(make_split_config(s, machine.software)), policy_(make_recompute_policy(s.activation, s.model)) {
  const std::vector<StorageRule> rules = policy_.rules;
  // What auto decides per rank, and what the user fixed beside it, comes on top of plain layers (stage_policies.h).
  if (s.activation.policy == "auto") policy_ = {};
  const std::int64_t tokens = split_.sequence_parallel ? split_.tokens / split_.tp : split_.tokens;
  moe_ = known ? known->get(s, machine, placement, tokens) : moe_effects(s, machine, placement, tokens);
  comm.set_moe(moe_);
  split_.expert_row_ratio = moe_.row_ratio;
  options_.tp = s.parallel.tp;
  options_.tp_overlap = s.overlap.tp;
  options_.side_stream = s.moe.overlap_shared;
  // Communication kernels of overlapped pairs keep their SMs for the whole chunk (hardware notes 3.6).
  if (overlaps_expert_exchange(s))
    options_.compute_scale =
        static_cast<double>(machine.gpu.sm_count) / std::max(1, machine.gpu.sm_count - machine.software.ep_sms);
  const ModelSpec& m = s.model;
  embedding_ = time(embedding_program(m, split_), false, machine, comm);
  head_ = time(head_program(m, split_), false, machine, comm);
  if (s.mtp && m.mtp_layers > 0) {
    mtp_ = time(mtp_program(m, split_), policy_.any(), machine, comm);
    mtp_parameters_ = k3sim::mtp_parameters(m, split_);
  }
  embedding_parameters_ = k3sim::embedding_parameters(m, split_);
  head_parameters_ = k3sim::head_parameters(m, split_);
  if (s.parallel.vocabulary_stages && s.parallel.pp > 1) time_vocabulary_shares(s, machine, comm);
  time_decoder(m, machine, comm);
  check_rules(rules);
}

void LayerSet::time_vocabulary_shares(const Scenario& s, const Machine& machine, const CommCoster& comm) {
  vocabulary_ranks_ = s.parallel.pp;
  const VocabularySplit share{s.parallel.pp, s.parallel.vocabulary_overlap};
  embedding_share_ = time(embedding_share_program(s.model, split_, share), false, machine, comm);
  head_share_ = time(head_share_program(s.model, split_, share), false, machine, comm);
}

void LayerSet::check_rules(const std::vector<StorageRule>& rules) const {
  for (const StorageRule& rule : rules)
    if (std::none_of(tensor_names_.begin(), tensor_names_.end(),
                     [&](const std::string& name) { return name_matches(rule.match, name); }))
      throw ConfigError({Problem{{},
                                 "activation.tensors",
                                 "no saved tensor matches '" + rule.match + "'",
                                 did_you_mean(rule.match, {tensor_names_.begin(), tensor_names_.end()})}});
}

const TimedLayer* LayerSet::time(const LayerProgram& program, bool recomputed, const Machine& machine,
                                 const CommCoster& comm) {
  for (const SavedTensor& t : program.saved) tensor_names_.insert(t.name);
  storage_.push_back(time_layer(program, recomputed ? policy_ : RecomputePolicy{}, options_, machine, comm));
  return &storage_.back();
}

// Layers of one kind with the same number of stored AttnRes rows are the same program.
void LayerSet::time_decoder(const ModelSpec& m, const Machine& machine, const CommCoster& comm) {
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;
  std::map<Key, std::array<const TimedLayer*, 2>> known;
  CommCoster plain = comm;
  plain.set_moe({});
  LayerRouter router(moe_, options_, machine, plain);
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const LayerSpec& l = m.layers[i];
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t block = m.attnres_block;
    const std::int64_t rows = block > 0 ? index / block * 2 + (index % block == 0 ? 1 : 0) : 0;
    const Key key(static_cast<int>(l.attention.kind), l.attention.window, l.ffn.experts, l.ffn.intermediate, rows,
                  i == 0);
    const auto [it, fresh] = known.try_emplace(key);
    if (fresh) {
      const LayerProgram program = layer_program(m, i, split_);
      for (bool recomputed : {false, true}) {
        if (recomputed && !policy_.any()) continue;
        it->second[recomputed ? 1 : 0] = time(program, recomputed, machine, comm);
        storage_.back().moe = l.ffn.is_moe();
        if (l.ffn.is_moe() && moe_.draws)
          storage_.back().least = std::make_shared<const TimedPasses>(router.least(storage_.back()));
      }
    }
    decoder_.push_back(it->second);
    parameters_.push_back(layer_parameters(m, i, split_));
  }
}

}  // namespace k3sim
