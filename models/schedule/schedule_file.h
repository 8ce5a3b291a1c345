// A schedule file that the program will run: read, linted, and refused with every reason if it is not valid.
// Source: product-spec section 3 (`schedule: {file: ...}`).
#pragma once

#include <string>

#include "models/schedule/schedule.h"

namespace k3sim {

// Compute actions only: transfers, gathers and reductions are placed anew by whoever runs the schedule. Throws
// ConfigError.
Schedule read_valid_schedule(const std::string& file);

}  // namespace k3sim
