// Parameters and gradients of one rank while its schedule runs: gathers before forward, reductions after backward.
//
//   zero 0, 1   gradients wait for the last micro-batch and are reduced in buckets
//   zero 2, 3   every layer's gradients are reduced after every micro-batch
//   by chunk    (pipeline ZeRO-2, or ZeRO-2 with several chunks per rank) two chunk-sized buffers take turns. When the
//   schedule moves on to another chunk,
//               the full buffer is reduce-scattered; a shard in CPU memory comes up, is added to and goes back (once
//               over PCIe in each direction), while the other buffer fills; the chunk after that waits until the flush
//               is through.
// Source: k3-facts 2.3; Megatron-LM distributed optimizer (buckets); Rajbhandari et al. 2020.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "models/build/data_parallel.h"
#include "models/build/step_emitter.h"

namespace k3sim {

class ParameterTraffic {
 public:
  ParameterTraffic(const StepPlan& plan, const Machine& machine, RankEmitter& emitter);

  const DataParallel& data_parallel() const { return data_parallel_; }
  // Forgets the rank before, looks up where every chunk's gradients are complete and gathers parameters ahead.
  void open_rank(int rank);
  // Gathers and buffers that the walk of one action waits for, and what its communication costs the compute beside it.
  void attach(PassWalk& walk, const Action& action, std::size_t index);
  void pass_ended(const PassStep& step, const PassWalk& walk);
  void action_part_ended(const Action& action, std::size_t index);
  bool is_last_gradient(const Action& action, std::size_t index) const;
  // Reduces what is left; tasks that must be done before the optimizer.
  std::vector<TaskId> close_rank(TaskId last_compute);
  DataTraffic late_gather(const std::vector<const Chunk*>& chunks) const;

 private:
  const Chunk& chunk_of(int stage) const {
    return plan_.chunks[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
  }
  Time contention(Time communication) const;
  void attach_gathers(PassWalk& walk, const Action& action);
  void change_run(PassWalk& walk, const Action& action, std::size_t index);
  void emit_initial_gathers(int rank);
  TaskId add_gather(const DataTraffic& traffic, const ParameterCount& parameters);
  TaskId add_reduction(const ParameterCount& parameters, TaskId ready);
  void flush_bucket();
  void gradients_ready(const PassStep& step, TaskId ready);
  Bytes shard(const ParameterCount& p) const;

  const StepPlan& plan_;
  const Machine& machine_;
  RankEmitter& emitter_;
  DataParallel data_parallel_;
  bool by_chunk_, cpu_shards_;
  std::uint32_t shard_label_;

  std::vector<TaskId> first_gather_;  // by stage and part
  std::map<int, std::size_t> last_gradient_action_;
  std::vector<std::pair<ParameterCount, TaskId>> unreduced_;  // waiting for the end of the rank's work
  ParameterCount bucket_;
  TaskId bucket_ready_ = kNoTask;
  std::vector<TaskId> reductions_, flushes_;
  int run_stage_ = -1;         // chunk whose gradients fill the current buffer
  TaskId run_tail_ = kNoTask;  // its last weight gradient so far
};

}  // namespace k3sim
