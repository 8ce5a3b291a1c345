// summary.json of one predicted step, with the keys of product-spec section 4 in that order, and the names of the parts
// of time and memory that every report uses. Numbers are rounded to 9 significant digits so that the bytes do not
// depend on the last bits of a library. Source: product-spec section 4.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"

namespace k3sim {

std::string summary_json(const Scenario& scenario, const StepPrediction& prediction);  // ends with a newline
std::string scenario_digest(const Scenario& scenario);  // SHA-256 of the text, hexadecimal

struct BreakdownPart {
  const char *key, *what;
  Time RankBreakdown::*field;
};
const std::vector<BreakdownPart>& breakdown_parts();

struct BubbleCause {
  const char *key, *what;
  Time BubbleCauses::*field;
};
const std::vector<BubbleCause>& bubble_causes();  // they sum to the part "bubble"

struct MemoryPart {
  const char *key, *what;
  bool host = false;
  Bytes bytes;
};
std::vector<MemoryPart> memory_parts(const RankMemory& memory);  // at the rank's peak; GPU parts first

}  // namespace k3sim
