// Predictors of the two-GPU steps; see step_validation.h. Source: measurements README.
#pragma once

#include "models/build/machine.h"
#include "models/config/model_spec.h"

namespace k3sim {

struct TwoGpuStep {
  double seconds = 0;
  double peak_bytes[2] = {0, 0};  // rank 0 and 1
};

class TwoGpuSteps {
 public:
  explicit TwoGpuSteps(const Machine& machine);

  TwoGpuStep stage_alone(int layers, std::int64_t tokens) const;
  TwoGpuStep pipeline(int layers_per_stage, int microbatches, std::int64_t tokens) const;
  TwoGpuStep ddp(int layers, std::int64_t tokens, double bucket_bytes) const;
  TwoGpuStep fsdp(int layers, std::int64_t tokens) const;
  TwoGpuStep expert_parallel(std::int64_t tokens) const;

 private:
  struct BlockTimes {
    Time forward, backward;
  };
  BlockTimes block(std::int64_t tokens) const;
  Time collective(Collective kind, double bytes) const;
  // Exchange of one activation in each direction (or one), issued eagerly.
  Time exchange(double bytes, bool both_ways) const;
  // A pass over values of the parameters' type that reads each once and writes it once.
  Time copy_of(double bytes) const;
  double block_parameters() const;
  double activation_bytes(std::int64_t tokens) const;
  // Compute time added while communication of this length runs beside it.
  Time contention(Time communication) const;

  const Machine& machine_;
  ModelSpec llama_, k3_;
};

}  // namespace k3sim
