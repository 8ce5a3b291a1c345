// Saved tensors that leave the GPU after a layer's forward and come back before its backward, on the copy engines of
// one rank: host memory over PCIe, another pipeline rank over the network. Both cross the GPU's PCIe link, so that they
// take turns. Tensors come back layer by layer, at most two layers ahead of their use.
//   time = bytes to the host / host link + bytes to another rank / NIC rate, in each direction
// The schedule's own offloads (BPipe) move a whole micro-batch: the copies run beside the compute action before them,
// an onload once the offload that makes its place has left. The other rank is the one with the mirrored position in the
// pipeline: early stages hold much, late ones little. Source: k3-facts 2.4; hardware notes 4.1 (rate with all GPUs of a
// node busy both ways).
#pragma once

#include <array>
#include <map>
#include <utility>

#include "models/build/step_emitter.h"

namespace k3sim {

class ActivationCopies {
 public:
  ActivationCopies(const StepPlan& plan, const Machine& machine, RankEmitter& emitter);

  void open_rank(int rank) {
    rank_ = rank, recent_tails_ = {};
    forward_end_.clear(), away_.clear(), back_.clear();
    last_end_ = before_last_end_ = last_offload_ = TaskId();
  }
  // An offload or onload of the schedule: a whole micro-batch of a stage, beside the compute action before it.
  void move(const Action& action);
  void action_ended(const Action& action, TaskId tail);
  void attach(PassWalk& walk, const Action& action);
  void pass_ended(const PassStep& step, const PassWalk& walk);

 private:
  const TimedLayer& layer_of(const PassStep& step) const;
  Time copy_time(const TimedLayer& layer) const;
  int mirrored() const;  // rank that keeps what the policy sends to another rank
  TaskId add_copy(Bytes to_host, Bytes to_rank, int peer, bool to_gpu);

  static constexpr std::size_t kPrefetchLayers = 2;
  const StepPlan& plan_;
  const Machine& machine_;
  Bandwidth host_, network_;
  int rank_ = 0;
  RankEmitter& emitter_;
  std::uint32_t label_;
  std::array<TaskId, kPrefetchLayers> recent_tails_{};
  using Key = std::pair<int, int>;  // stage, micro-batch
  std::map<Key, TaskId> forward_end_, away_, back_;
  TaskId last_end_, before_last_end_, last_offload_;
};

}  // namespace k3sim
