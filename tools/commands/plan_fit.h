// `plan --fit`: prints the smallest number of nodes per GPU type, the margins, the binding term and the knobs; with
// --out also fit_frontier.csv. Source: issue "What-if" (fit question first).
#pragma once

#include <string>

#include "tools/planner/search.h"

namespace k3sim {

struct CommandContext;

// Exit code: 0 something fits, 1 nothing does.
int plan_fit(const SearchSpace& space, MachineStore& machines, const SearchOptions& options, const std::string& folder,
             CommandContext& context);

}  // namespace k3sim
