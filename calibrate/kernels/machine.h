// What this machine is, as found: GPUs, clocks, power, temperature, links. Nothing is ever changed.
// Source: CUDA runtime attributes; NVML for clocks, power and NVLink, loaded at run time and optional.
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/availability.h"

namespace k3sim {

struct MachineReport {
  MachineFacts facts;
  std::vector<std::string> header;  // the '#' lines; the first names the GPU, the driver and the power limit
};

// gpus: how many to use, 0 for all.
MachineReport inspect_machine(int gpus);
// "gpu 0: SM 1980 MHz, memory 3201 MHz, 412 W, 54 C": as it is now.
std::string thermal_state(int gpus);

}  // namespace k3sim
