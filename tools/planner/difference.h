// Explains the difference of two predictions: step time along the critical path, the same by what the compute streams
// of the mean rank do or wait for, and peak memory of the fullest rank by owner.
// The critical path is one chain of tasks without gaps that lasts as long as the step. Its slowest stage is the
// pipeline rank whose kernels fill most of it; kernels of other ranks before the path first comes to that rank, and
// after it has left it for good, are the bubble (fill and drain), in between they are other stages that the slowest one
// waits for. Every part is exact: both lists of times add up to the difference of the step times, the memory parts to
// that of the peaks. Source: issue "What-if" (diff); peers.md (d) 3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/build/step.h"
#include "tools/report/csv.h"

namespace k3sim {

struct Difference {
  std::string part;
  double before = 0, after = 0;  // seconds or GiB
  double change() const { return after - before; }
};

struct StepDifference {
  double step_before = 0, step_after = 0;
  std::vector<Difference> time;               // mean over ranks
  std::vector<Difference> critical;           // along the critical path
  int slowest_before = 0, slowest_after = 0;  // pipeline ranks
  std::vector<Difference> memory;             // fullest rank, GiB
};

// What holds the fullest rank's memory at its peak, by tensor, GiB: the largest by name whatever their layer and
// micro-batch, the rest by category, what lies outside the allocator and its overhead. Adds up to the peak.
using MemoryOwners = std::vector<std::pair<std::string, double>>;
MemoryOwners memory_owners(const StepPrediction& prediction, const Machine& machine);  // requires its plan

// Requires: both predictions kept their graphs (StepOptions::keep_graph). Without owners memory is split by category.
StepDifference difference(const StepPrediction& before, const StepPrediction& after,
                          const MemoryOwners& owners_before = {}, const MemoryOwners& owners_after = {});
CsvTable difference_table(const StepDifference& d);

}  // namespace k3sim
