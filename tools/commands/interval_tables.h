// The intervals of error_intervals.h as text, CSV and JSON. Source: error_intervals.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/report/csv.h"
#include "tools/validation/error_intervals.h"

namespace k3sim {

std::string interval_text(const std::vector<IntervalCoverage>& intervals);
CsvTable interval_table(const std::vector<IntervalCoverage>& intervals);
nlohmann::ordered_json interval_json(const std::vector<IntervalCoverage>& intervals);

}  // namespace k3sim
