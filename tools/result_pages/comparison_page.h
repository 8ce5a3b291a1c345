// The reports of `compare`: a profiler trace or a memory snapshot beside the prediction, or beside the emulated
// allocator. Source: product-spec sections 2 and 7; engine-design sections 10 and 13.
#pragma once

#include <string>

#include "models/build/step.h"
#include "tools/import/snapshot_replay.h"
#include "tools/import/trace_comparison.h"
#include "tools/report/html_page.h"

namespace k3sim {

HtmlPage trace_comparison_page(const TraceComparison& comparison, const std::string& command,
                               const std::string& scenario_text);  // empty: only analysed

// Peak of one rank: measured, predicted, and the predicted parts.
CsvTable memory_comparison_table(const ReplayReport& measured, const RankMemory& predicted);
HtmlPage memory_comparison_page(const ReplayReport& measured, const RankMemory& predicted, const Scenario& scenario,
                                const std::string& command);

CsvTable replay_table(const ReplayReport& report);
HtmlPage replay_page(const ReplayReport& report, const std::string& command);

}  // namespace k3sim
