// Explains the difference of two predictions: step time by what the compute streams of the mean rank do or wait for,
// the same along the critical path, and peak memory of the fullest rank by owner.
// Every part is exact: the time parts add up to the difference of the step times (mean over ranks), the memory parts to
// that of the peaks. Source: issue "What-if" (diff); peers.md (d) 3.
#pragma once

#include <string>
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
  std::vector<Difference> time;      // mean over ranks
  std::vector<Difference> critical;  // along the critical path, by kind of task
  std::vector<Difference> memory;    // fullest rank, GiB
};

// Requires: both predictions kept their graphs (StepOptions::keep_graph).
StepDifference difference(const StepPrediction& before, const StepPrediction& after);
CsvTable difference_table(const StepDifference& d);

}  // namespace k3sim
