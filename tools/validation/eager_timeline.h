// Time of a chain of kernels as an eager framework issues them: the GPU runs in order, no kernel starts before the host
// has issued it. Communication runs on its own lane and slows the compute beside it.
//   issue(i) = issue(i-1) + launches * host_launch;  start(i) = max(finish(i-1), issue(i))
// Source: hardware notes 5.5 (eager operator 10.4 us on the H200 host), 3.6; measurements README.
#pragma once

#include <algorithm>
#include <vector>

#include "models/cost/cost_model.h"
#include "models/transformer/program.h"

namespace k3sim {

class EagerTimeline {
 public:
  EagerTimeline(const CostModel& cost, Time host_launch) : cost_(cost), host_launch_(host_launch) {}

  void run(const std::vector<Item>& items);  // compute items in list order; communication items must be added apart
  void run(const Kernel& kernel);
  void wait(Time at) { gpu_ = std::max(gpu_, at); }
  void add(Time busy) { gpu_ += busy; }
  Time now() const { return gpu_; }
  Provenance provenance() const { return provenance_; }

 private:
  const CostModel& cost_;
  Time host_launch_, gpu_, host_;
  Provenance provenance_ = Provenance::measured;
};

}  // namespace k3sim
