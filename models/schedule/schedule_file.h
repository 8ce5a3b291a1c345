// A schedule file that the program will run: read, linted, and refused with every reason if it is not valid.
// Source: product-spec section 3 (`schedule: {file: ...}`).
#pragma once

#include <string>

#include "models/schedule/schedule.h"

namespace k3sim {

// Compute actions only: transfers, gathers and reductions are placed anew by whoever runs the schedule. Throws
// ConfigError.
Schedule read_valid_schedule(const std::string& file);

// The same for a job: also refuses a file whose ranks, stages (ranks x chunks) or micro-batches are not the job's.
// Uses of `expected`: ranks, chunks, microbatches.
Schedule read_schedule_for(const std::string& file, const ScheduleSpec& expected);

}  // namespace k3sim
