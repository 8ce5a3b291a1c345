// Evaluates a space: threads over an atomic index, rows to a journal as they finish, the sorted table at the end.
// Without shards the table is sweep.csv; shard i of n evaluates the configurations with index % n == i and writes
// shard-i-of-n.csv; merge_shards joins them to the same bytes. Under mpirun (mpi_runner.cpp) the ranks take
// configurations from one shared counter and rank 0 writes the table.
// Source: engine-design section 9; product-spec section 3.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/planner/work_share.h"
#include "tools/sweep/rows.h"

namespace k3sim {

struct SweepRequest {
  std::string folder;
  int shard = 0, shards = 1;
  bool sharded = false;  // --shard was given, even 0/1
  bool resume = false;
  int threads = 1;
};

struct SweepOutcome {
  std::int64_t total = 0;      // rows in the table
  std::int64_t evaluated = 0;  // in this run, the rest was there already
  std::string file;            // the table; empty: another rank writes it
};

using Advance = std::function<void(std::int64_t steps)>;  // called from several threads

SweepOutcome run_sweep(RowMaker& rows, const SweepRequest& request, const Advance& advance);
// Checks that every shard is there and complete. Throws ConfigError naming what is missing.
SweepOutcome merge_shards(const RowMaker& rows, const std::string& folder);

// Writes under a temporary name and renames.
void write_table(const std::string& path, const std::string& content);

// True when this process was started by mpirun or srun with several ranks.
bool started_by_mpi();
// Both throw ConfigError when this build has no MPI.
SweepOutcome run_sweep_mpi(RowMaker& rows, const SweepRequest& request, const Advance& advance);
std::unique_ptr<WorkShare> mpi_share();

}  // namespace k3sim
