// A measured curve of time over buffer size for one rank count.
//   inside:  linear interpolation of log(time) over log(size)
//   below:   the first time (a tiny message costs the latency)
//   above:   last time + further bytes at the marginal rate of the last factor of four
// Source: hardware notes section 3.2 (an alpha-beta line is 1.5-2.5x off between 64 KiB and 64 MiB).
#pragma once

#include <vector>

#include "models/cost/cost_model.h"
#include "sim/base/units.h"

namespace k3sim {

struct TimeCurve {
  int ranks = 0;
  std::vector<double> bytes;    // ascending, at least two
  std::vector<double> seconds;  // not descending
  Provenance provenance = Provenance::measured;
};

struct CurveTime {
  double seconds = 0;
  Provenance provenance = Provenance::missing;
};

// Requires: a curve with at least two points.
CurveTime curve_time(const TimeCurve& curve, double bytes);
// Bytes per second gained from the point a factor of four below the end to the end.
double marginal_rate(const TimeCurve& curve);

// A curve for another link: the size-dependent part is divided by speed, the latency becomes first_seconds.
TimeCurve rescaled(const TimeCurve& curve, double speed, double first_seconds);

}  // namespace k3sim
