// Tasks of the vision encoder in the step graph: VF and VB on the compute stream of the rank that runs them, image
// embeddings to the first stage and their gradients back, gradient reduction at the end and parameter gather at the
// start of the rank's step.
//   VF(m) -> embeddings -> forward of m on the first stage        its backward -> gradients -> VB(m)
// The encoder's parameters are replicated on every rank (stage0: on the first stage's ranks only) and reduced over all
// of them, sharded like the rest. Source: k3-facts 2.8.
#pragma once

#include <vector>

#include "models/build/step_emitter.h"

namespace k3sim {

class VisionTasks {
 public:
  VisionTasks(const StepPlan& plan, const Machine& machine, RankEmitter& emitter);

  void open_rank(int rank);
  // False: not an action of the encoder.
  bool emit(const Action& action, int replica);
  // The first stage's forward begins with `task`, or its input gradient is ready with it.
  void first_stage_ran(const Action& action, int replica, TaskId task);
  // Adds what the optimizer waits for.
  void close_rank(std::vector<TaskId>& done);
  void connect();

 private:
  struct Ends {  // of one micro-batch and replica
    TaskId encoded, entered, left, returned;
  };
  Ends& ends(int microbatch, int replica) {
    return ends_[static_cast<std::size_t>(replica) * plan_.vision.microbatches.size() +
                 static_cast<std::size_t>(microbatch)];
  }
  Time over_replicas(Collective kind, Bytes bytes) const;

  const StepPlan& plan_;
  const Machine& machine_;
  RankEmitter& emitter_;
  std::vector<int> backward_rank_;  // by micro-batch
  std::vector<Ends> ends_;
  int rank_ = 0, first_rank_ = 0;
  TaskId last_;  // of the encoder on this rank
  Time hop_;
  std::uint32_t forward_label_ = 0, backward_label_ = 0, transfer_label_ = 0, reduce_label_ = 0, gather_label_ = 0;
};

}  // namespace k3sim
