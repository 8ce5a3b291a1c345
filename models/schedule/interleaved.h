// Order of the (chunk, micro-batch) pairs of interleaved schedules, shared by interleaved 1F1B and the K3 schedule.
// Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py (get_schedule_table, get_pp_rank_microbatches);
// torch/distributed/pipelining/schedules.py (ScheduleInterleaved1F1B: number_of_rounds).
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct ChunkStep {
  int chunk;
  int microbatch;
};

// Groups of the given sizes; within a group chunk after chunk. Backward walks the same table with the chunks reversed.
std::vector<ChunkStep> interleaved_table(const std::vector<int>& groups, int chunks);

// Forwards before the first backward, capped at m * v: 2 (p - 1 - r) + (v - 1) group + extra.
int interleaved_warmup(const ScheduleSpec& spec, int rank, int group);

// Micro-batches per group. spec.group_size 0: max(1, m / p) groups as equal as possible, larger ones first (p each when
// p divides m; all m in one group when m < p, as PyTorch's rounds). Otherwise Megatron's rules; throws ConfigError when
// m cannot be grouped by them.
std::vector<int> interleaved_groups(const ScheduleSpec& spec);

}  // namespace k3sim
