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
  LayerSet(const Scenario& scenario, const Machine& machine, const Placement& placement, CommCoster comm);

  const SplitConfig& split() const { return split_; }
  const MoeEffects& moe() const { return moe_; }
  const RecomputePolicy& policy() const { return policy_; }
  const TimingOptions& options() const { return options_; }
  const TimedLayer* embedding() const { return embedding_; }
  const TimedLayer* head() const { return head_; }
  const TimedLayer* mtp() const { return mtp_; }  // null: none trained
  const TimedLayer* decoder(std::size_t index, bool recomputed) const { return decoder_[index][recomputed ? 1 : 0]; }
  const ParameterCount& parameters(std::size_t index) const { return parameters_[index]; }
  const ParameterCount& embedding_parameters() const { return embedding_parameters_; }
  const ParameterCount& head_parameters() const { return head_parameters_; }
  const ParameterCount& mtp_parameters() const { return mtp_parameters_; }
  std::size_t layers() const { return decoder_.size(); }

 private:
  const TimedLayer* time(const LayerProgram& program, bool recomputed, const Machine& machine, const CommCoster& comm);
  void check_rules() const;
  void time_decoder(const ModelSpec& model, const Machine& machine, const CommCoster& comm);

  SplitConfig split_;
  MoeEffects moe_;
  RecomputePolicy policy_;
  TimingOptions options_;
  std::deque<TimedLayer> storage_;
  std::set<std::string> tensor_names_;  // of all layers, for rules that match none
  const TimedLayer *embedding_ = nullptr, *head_ = nullptr, *mtp_ = nullptr;
  std::vector<std::array<const TimedLayer*, 2>> decoder_;
  std::vector<ParameterCount> parameters_;
  ParameterCount embedding_parameters_, head_parameters_, mtp_parameters_;
};

}  // namespace k3sim
