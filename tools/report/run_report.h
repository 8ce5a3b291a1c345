// The report of one predicted step: answer, where the time goes, timeline, memory, network, expert load, costs and
// their origin, sensitivity (when given), assumptions, how to reproduce. Every number has a unit and a source. Source:
// engine-design section 18; product-spec section 4.
#pragma once

#include <optional>
#include <string>

#include "models/build/machine.h"
#include "models/build/step.h"
#include "tools/report/html_page.h"
#include "tools/report/memory_tables.h"

namespace k3sim {

struct RunReportInput {
  const Scenario& scenario;
  const StepPrediction& prediction;            // with keep_graph
  std::string command;                         // as typed
  const Machine* machine = nullptr;            // for rates of links; null: no network heat
  std::optional<PageDeltas> sensitivity = {};  // what changes of the inputs do
  const MemoryView* memory = nullptr;          // of the fullest rank; may be missing
};

HtmlPage run_report(const RunReportInput& input);

// The answer in one sentence, with the error bar.
std::string run_answer(const Scenario& scenario, const StepSummary& summary);

}  // namespace k3sim
