// What to measure next: the kernel shapes and collectives whose measurement would narrow the step's error bar most.
//   share(x) = time of x on the critical path / step;  error(x) = share x relative error of its cost
//   bar = sqrt(sum over families of (sum of their errors)^2)          families err alone, shapes of one family together
//   narrows(x) = bar - bar with the error of x at that of a measured shape
// Relative error: the 95th percentile of the cost's own cross-validation, but at least what its provenance admits.
// Those floors are declared, not measured; they only have to be in the right order: measured 3 %, fitted 5 %, held at
// the edge of the measured range 15 %, borrowed from another GPU 15 %, datasheet 30 %, assumed 50 %. Source: peers.md
// (d) 2 (what to measure next); engine-design section 14 (quantiles, root-sum-square).
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"

namespace k3sim {

struct MeasureNext {
  std::string what;   // kernel and pass, or collective and group
  std::string shape;  // what to time: dimensions, or kind, buffer and ranks
  bool collective = false;
  Provenance provenance = Provenance::measured;
  double share_pct = 0;    // of the step, on the critical path
  double error_pct = 0;    // 95 % of its cost
  double narrows_pct = 0;  // of the step: how much smaller the bar gets
};

struct MeasurementPlan {
  double bar_pct = 0;             // of the step, 95 %
  double after_pct = 0;           // when everything in the list has been measured
  std::vector<MeasureNext> list;  // largest gain first
};

// Predicts the step at kernel level. Throws as predict_step does.
MeasurementPlan measure_next(const Scenario& scenario, const Machine& machine, bool allow_assumed,
                             std::size_t most = 20);

}  // namespace k3sim
