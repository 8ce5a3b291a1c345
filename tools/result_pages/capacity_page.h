// The report of `capacity`: days, GPUs, cost and goodput, and how they move with the number of GPUs.
// Source: product-spec section 2; engine-design section 15.
#pragma once

#include <string>

#include "tools/planner/capacity.h"
#include "tools/report/html_page.h"

namespace k3sim {

struct CapacityPageInput {
  const Scenario& scenario;
  const Machine& machine;
  const StepSummary& step;
  const CapacityQuestion& question;
  std::string command;
};

HtmlPage capacity_page(const CapacityPageInput& input, const CapacityAnswer& answer);

// The answer for other numbers of GPUs: a quarter to four times, in whole nodes.
CsvTable capacity_curve(const CapacityPageInput& input, const CapacityAnswer& answer);

}  // namespace k3sim
