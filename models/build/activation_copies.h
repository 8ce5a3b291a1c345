// Saved tensors that leave the GPU after a layer's forward and come back before its backward, on the copy engines of
// one rank: host memory over PCIe, another pipeline rank over the network. Both cross the GPU's PCIe link, so that they
// take turns. Tensors come back layer by layer, at most two layers ahead of their use.
//   time = bytes to the host / host link + bytes to another rank / NIC rate, in each direction
// The other rank is the one with the mirrored position in the pipeline: early stages hold much, late ones little.
// Source: k3-facts 2.4; hardware notes 4.1 (rate with all GPUs of a node busy both ways).
#pragma once

#include <array>

#include "models/build/step_emitter.h"

namespace k3sim {

class ActivationCopies {
 public:
  ActivationCopies(const StepPlan& plan, const Machine& machine, RankEmitter& emitter);

  void open_rank(int rank) { rank_ = rank, recent_tails_ = {}; }
  void attach(PassWalk& walk, const Action& action);
  void pass_ended(const PassStep& step, const PassWalk& walk);

 private:
  const TimedLayer& layer_of(const PassStep& step) const;
  Time copy_time(const TimedLayer& layer) const;
  TaskId add_copy(const TimedLayer& layer, bool to_gpu);

  static constexpr std::size_t kPrefetchLayers = 2;
  const StepPlan& plan_;
  const Machine& machine_;
  Bandwidth host_, network_;
  int rank_ = 0;
  RankEmitter& emitter_;
  std::uint32_t label_;
  std::array<TaskId, kPrefetchLayers> recent_tails_{};
};

}  // namespace k3sim
