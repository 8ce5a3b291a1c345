// How busy NVLink and NIC of every pipeline rank are over the step: the bytes of each communication spread evenly over
// the time that it is on the wire. Source: engine-design sections 12 and 18.
#pragma once

#include <vector>

#include "models/build/machine.h"
#include "models/build/step.h"
#include "tools/report/html_page.h"

namespace k3sim {

inline constexpr int kHeatBins = 96;

// Bytes by pipeline rank and time bin. Requires: prediction made with keep_graph.
struct LinkHeat {
  std::vector<std::vector<double>> nvlink, nic;
};
LinkHeat link_heat(const StepPrediction& prediction);

// One grid per link class that carries anything, in GB/s; the caption names the rate of the link.
std::vector<PageHeat> network_heat(const StepPrediction& prediction, const Machine& machine);

}  // namespace k3sim
