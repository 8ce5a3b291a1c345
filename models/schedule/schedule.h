// A schedule (who does what in which order) and what is asked for to make one.
//
// Stages are numbered along the model. Bidirectional schedules (DualPipe) keep `chains` copies of the model: stage s of
// chain c has the number c * stages_per_chain() + s, and chain c works on the micro-batches
// [c * m / chains, (c + 1) * m / chains). Sequence-split schedules (Seq-1F1B) cut every micro-batch into `slices`
// pieces that are numbered like micro-batches: piece = micro-batch * slices + slice; forward runs slices upwards,
// backward downwards (causal attention). A stage's rank is explicit because V- and wave-shaped placements exist.
// Source: engine-design section 11.
#pragma once

#include <string>
#include <vector>

#include "models/schedule/action.h"
#include "sim/base/units.h"

namespace k3sim {

// Durations of one stage for one micro-batch; only ratios matter to the automatic scheduler.
struct StageTimes {
  Time forward = Time::us(1);
  Time input_grad = Time::us(1);
  Time weight_grad = Time::us(1);
  Time transfer = Time();  // activation or gradient between two ranks; runs beside compute
};

struct ScheduleSpec {
  std::string name = "1f1b";
  int ranks = 1;                         // p
  int chunks = 1;                        // v: stages per rank, where the schedule leaves a choice
  int microbatches = 1;                  // m, over both directions for bidirectional schedules
  int group_size = 0;                    // interleaved: consecutive micro-batches per chunk; 0: ranks
  int extra_warmup = 0;                  // forwards before the first backward beyond the ordinary number, on every rank
  int slices = 2;                        // seq1f1b: pieces per sequence
  bool split_wgrad = true;               // k3: routed experts' weight gradients as a block of their own
  bool overlap_send_with_wgrad = false;  // k3: that block may run beside the pipeline send
  StageTimes times{};                    // automatic: what the schedule is optimised for
  std::vector<StageTimes> times_per_stage{};  // automatic: overrides `times`, one entry per stage
  double memory_limit =
      0;  // automatic: activations per rank, in micro-batches of all of the rank's stages; 0: no limit
};

struct Schedule {
  std::string name;
  int ranks = 0;
  int stages = 0;        // over all chains
  int microbatches = 0;  // numbered units of work per stage: micro-batches, or pieces when slices > 1
  int chains = 1;
  int slices = 1;
  std::vector<int> rank_of_stage;            // size: stages
  std::vector<std::vector<Action>> actions;  // size: ranks

  int stages_per_chain() const { return stages / chains; }
  int microbatches_per_chain() const { return microbatches / chains; }
  int chain_of(int stage) const { return stage / stages_per_chain(); }
  bool is_first(int stage) const { return stage % stages_per_chain() == 0; }
  bool is_last(int stage) const { return stage % stages_per_chain() == stages_per_chain() - 1; }
  // Position along the model: which layers the stage holds, equal for the copies of a bidirectional schedule.
  int model_stage(int stage) const { return stage % stages_per_chain(); }
  // First micro-batch that the stage works on, and how many.
  int first_microbatch(int stage) const { return chain_of(stage) * microbatches_per_chain(); }
  std::vector<int> stages_of_rank(int rank) const {
    std::vector<int> out;
    for (int s = 0; s < stages; ++s)
      if (rank_of_stage[static_cast<std::size_t>(s)] == rank) out.push_back(s);
    return out;
  }
};

}  // namespace k3sim
