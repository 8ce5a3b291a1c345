// Order of the (chunk, micro-batch) pairs of interleaved schedules, shared by interleaved 1F1B and the K3 schedule.
// Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py (get_schedule_table, get_pp_rank_microbatches).
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct ChunkStep {
  int chunk;
  int microbatch;
};

// Groups of `group` micro-batches; within a group chunk after chunk. Backward walks the same table with the chunks
// reversed.
std::vector<ChunkStep> interleaved_table(int microbatches, int chunks, int group);

// Forwards before the first backward, capped at m * v: 2 (p - 1 - r) + (v - 1) group + extra.
int interleaved_warmup(const ScheduleSpec& spec, int rank, int group);

// Megatron's rules for the group size (0 means p); throws ConfigError when m cannot be grouped.
int checked_group_size(const ScheduleSpec& spec);

}  // namespace k3sim
