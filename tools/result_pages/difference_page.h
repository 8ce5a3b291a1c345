// The report of `diff`: where two predictions differ, in time and memory. Source: product-spec section 2.
#pragma once

#include <string>

#include "tools/planner/difference.h"
#include "tools/report/html_page.h"

namespace k3sim {

struct DifferencePageInput {
  const Scenario &before, &after;
  const StepPrediction &first, &second;
  std::string command;
};

HtmlPage difference_page(const DifferencePageInput& input, const StepDifference& difference);

}  // namespace k3sim
