// The timed programs of all layers of a model for one split and activation policy: what scenarios share that differ
// only in pipeline, data parallelism, schedule or optimizer. Immutable once made, so that a search makes it once per
// split and reads it from many threads. Source: engine-design section 9 (read-only caches built beforehand).
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/build/layer_timing.h"
#include "models/config/scenario.h"
#include "models/transformer/layers.h"

namespace k3sim {

class LayerSet {
 public:
  // Requires: dp resolved. `comm` prices collectives for this scenario's placement and is used only here.
  // `known`: where the effects of routing are looked up; null: they are drawn anew.
  LayerSet(const Scenario& scenario, const Machine& machine, const Placement& placement, CommCoster comm,
           MoeEffectsCache* known = nullptr);

  const SplitConfig& split() const { return split_; }
  const MoeEffects& moe() const { return moe_; }
  const RecomputePolicy& policy() const { return policy_; }
  const TimingOptions& options() const { return options_; }
  const TimedLayer* embedding() const { return embedding_; }
  const TimedLayer* head() const { return head_; }
  const TimedLayer* mtp() const { return mtp_; }  // null: none trained
  // One pipeline rank's share of the vocabulary layers; null unless they are split over the stages.
  const TimedLayer* embedding_share() const { return embedding_share_; }
  const TimedLayer* head_share() const { return head_share_; }
  ParameterCount embedding_share_parameters() const { return share_of(embedding_parameters_); }
  ParameterCount head_share_parameters() const { return share_of(head_parameters_); }
  const TimedLayer* decoder(std::size_t index, bool recomputed) const { return decoder_[index][recomputed ? 1 : 0]; }
  const ParameterCount& parameters(std::size_t index) const { return parameters_[index]; }
  const ParameterCount& embedding_parameters() const { return embedding_parameters_; }
  const ParameterCount& head_parameters() const { return head_parameters_; }
  const ParameterCount& mtp_parameters() const { return mtp_parameters_; }
  std::size_t layers() const { return decoder_.size(); }

 private:
  const TimedLayer* time(const LayerProgram& program, bool recomputed, const Machine& machine, const CommCoster& comm);
  void check_rules(const std::vector<StorageRule>& rules) const;
  void time_vocabulary_shares(const Scenario& scenario, const Machine& machine, const CommCoster& comm);
  ParameterCount share_of(const ParameterCount& p) const {
    return {.dense = (p.dense + vocabulary_ranks_ - 1) / vocabulary_ranks_};
  }
  void time_decoder(const ModelSpec& model, const Machine& machine, const CommCoster& comm);

  SplitConfig split_;
  MoeEffects moe_;
  RecomputePolicy policy_;
  TimingOptions options_;
  std::deque<TimedLayer> storage_;
  std::set<std::string> tensor_names_;  // of all layers, for rules that match none
  const TimedLayer *embedding_ = nullptr, *head_ = nullptr, *mtp_ = nullptr;
  const TimedLayer *embedding_share_ = nullptr, *head_share_ = nullptr;
  int vocabulary_ranks_ = 1;
  std::vector<std::array<const TimedLayer*, 2>> decoder_;
  std::vector<ParameterCount> parameters_;
  ParameterCount embedding_parameters_, head_parameters_, mtp_parameters_;
};

}  // namespace k3sim
