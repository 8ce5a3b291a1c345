// summary.json of one predicted step, with the keys of product-spec section 4 in that order, and the CSV tables beside
// it. Numbers are rounded to 9 significant digits so that the bytes do not depend on the last bits of a library.
// Source: product-spec sections 2 and 4.
#pragma once

#include <string>

#include "models/build/step.h"

namespace k3sim {

std::string summary_json(const Scenario& scenario, const StepPrediction& prediction);  // ends with a newline
std::string ranks_csv(const StepPrediction& prediction);      // one row per pipeline rank
std::string breakdown_csv(const StepPrediction& prediction);  // long form: rank, part, seconds
std::string memory_csv(const StepPrediction& prediction);     // long form: rank, category, bytes
std::string scenario_digest(const Scenario& scenario);        // 64-bit fingerprint of the text, hexadecimal

struct BreakdownPart {
  const char *key, *what;
  Time RankBreakdown::*field;
};
const std::vector<BreakdownPart>& breakdown_parts();

}  // namespace k3sim
