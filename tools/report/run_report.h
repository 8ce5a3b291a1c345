// The report of one predicted step: answer, where the time goes, timeline, memory, network, costs and their origin,
// sensitivity (when given), assumptions, how to reproduce. Every number has a unit and a source.
// Source: engine-design section 18; product-spec section 4.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"
#include "tools/report/html_page.h"
#include "tools/report/memory_tables.h"

namespace k3sim {

// One input changed a little: what the step would gain.
struct SensitivityRow {
  std::string input;   // "network bandwidth"
  std::string change;  // "+10 %"
  double step_s = 0;   // the step time with the change
};

struct RunReportInput {
  const Scenario& scenario;
  const StepPrediction& prediction;         // with keep_graph
  std::string command;                      // as typed
  std::vector<SensitivityRow> sensitivity;  // may be empty
  const MemoryView* memory = nullptr;       // of the fullest rank; may be missing
};

HtmlPage run_report(const RunReportInput& input);

// The answer in one sentence, with the error bar.
std::string run_answer(const Scenario& scenario, const StepSummary& summary);

}  // namespace k3sim
