// Why one plan beats another, in seconds per part of the step and in settings; ranked tables.
// Source: issue "What-if" (explanation, error bars); engine-design section 16.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/search.h"

namespace k3sim {

struct PartChange {
  const char* part;
  double seconds;  // of the second minus of the first
};
// Largest change first; parts that do not change are left out. They add up to the difference of the step times.
std::vector<PartChange> part_changes(const StepSummary& first, const StepSummary& second);

// Two or three sentences: settings that differ, parts that decide, and whether the error bars allow the verdict.
std::string explain_winner(const SearchSpace& space, const Ranked& winner, const Ranked& other);

CsvTable plan_table(const SearchSpace& space, const SearchResult& result);
CsvTable candidates_table(const SearchSpace& space, const SearchResult& result);  // every configuration's verdict
// "how many candidates each rule removed", one line per reason.
std::string counts_text(const SearchResult& result);
// key=value of the axes that have several values.
std::string layout_text(const SearchSpace& space, std::int64_t index);
std::string layout_text(const SearchSpace& space, const Ranked& ranked);  // says when the policy was searched

}  // namespace k3sim
