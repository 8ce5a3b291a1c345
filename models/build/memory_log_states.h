// Buffers of a rank that do not belong to one micro-batch: weights, gradients, optimizer states, and what FSDP gathers
// and reduces around every layer. Part of the walk of memory_log_walk.h; rules there and in models/memory/states.h.
// Source: Megatron-LM core/distributed/param_and_grad_buffer.py (contiguous buffers per chunk, dense and expert apart),
// core/optimizer/distrib_optimizer.py (FP32 shards); PyTorch FSDP2 _fsdp_param_group.py.
#pragma once

#include <functional>
#include <map>

#include "models/build/memory_log_sink.h"
#include "models/build/software_profile.h"
#include "models/build/step_plan.h"
#include "models/memory/states.h"

namespace k3sim {

StateShape state_shape(const StepPlan& plan, int rank);

class RankStates {
 public:
  RankStates(const StepPlan& plan, const SoftwareProfile& software, int rank, MemorySink& sink);

  void start(bool with_moments);
  void before_forward(int stage, std::size_t part);
  void after_forward(int stage, std::size_t part);
  void before_backward(int stage, std::size_t part);
  void after_backward(int stage, std::size_t part);
  void optimizer_step(bool first);

 private:
  struct Unit {  // what one gather brings: a layer, or embedding and head together
    std::int64_t parameters = 0;
    MemoryHandle gathered, gradient;
  };
  const Chunk& chunk(int stage) const;
  Unit& unit(int stage, std::size_t part);
  bool is_root(int stage, std::size_t part) const;
  void gather(Unit& u, int stage, std::size_t part);
  void drop(MemoryHandle& h);
  void contiguous(std::int64_t parameters, Bytes each, MemoryCategory category, const char* name, int stage);
  void moments(bool first);
  void vision_encoder();
  void weights(const ParameterCount& p, int stage);
  std::int64_t sharded(const ParameterCount& p) const;
  // Parameter blocks of a stage: one per layer; vocabulary tables that are split over the stages come as one more.
  std::vector<ParameterCount> blocks(int stage) const;

  const StepPlan& plan_;
  const OptimizerConfig& optimizer_;
  const SoftwareProfile& software_;
  MemorySink& sink_;
  std::vector<int> stages_;
  StateShape shape_;
  bool fsdp_;
  std::map<std::pair<int, int>, Unit> units_;
  Unit root_;
  MemoryHandle reducing_;  // input of the reduce-scatter in flight
};

}  // namespace k3sim
