// Durations for the schedule commands: four options for all stages alike, or a file with one line per stage:
//   stage,forward,input_grad,weight_grad,transfer
//   0,12.5 ms,13.1 ms,9 ms,0.4 ms
// Source: issue 5 (time to scale from real durations).
#pragma once

#include <string>
#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct ScheduleCommandOptions;

// Throws UsageError for a text that is no time.
StageTimes uniform_stage_times(const ScheduleCommandOptions& options);
// Throws ConfigError with all problems and their places; every stage from 0 on must be there once.
std::vector<StageTimes> read_stage_times(const std::string& file);

}  // namespace k3sim
