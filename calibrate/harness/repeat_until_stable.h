// When to stop repeating a measurement, and what to report from the samples.
//   stop when n >= min_reps and the 95 % interval of the median, by order statistics, is narrower than +-rel_interval
//   of the median; or when max_reps or max_total_us is reached (then the row is reported with the interval it has).
//   interval: ranks n/2 -+ 0.98 sqrt(n), the normal approximation of the binomial (distribution-free).
// Source: engine-design.md section 14.6 (>= 20 repeats until the relative 95 % interval < 2 %, medians).
#pragma once

#include <vector>

namespace k3sim {

struct StopRule {
  int min_reps = 20;
  int max_reps = 200;
  double rel_interval = 0.02;
  double max_total_us = 400'000;  // device time spent in the timed region
  int floor_reps = 5;             // even very long kernels run this often
};

struct Summary {
  double median_us = 0;
  double p20_us = 0;
  double p80_us = 0;
  double rel_interval = 0;  // half width of the 95 % interval of the median over the median
  int reps = 0;
};

// Linear interpolation between order statistics. Requires: samples not empty, 0 <= q <= 1.
double quantile(std::vector<double> samples, double q);

class RepeatUntilStable {
 public:
  explicit RepeatUntilStable(StopRule rule) : rule_(rule) {}
  void add(double sample_us);
  bool finished() const;
  Summary summary() const;

 private:
  double relative_interval() const;
  StopRule rule_;
  std::vector<double> sorted_;
  double total_us_ = 0;
};

}  // namespace k3sim
