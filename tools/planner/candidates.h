// The steps of the search around the simulation: making candidates, bounding them, judging finalists.
// Source: engine-design section 16.
#pragma once

#include "tools/planner/search.h"

namespace k3sim {

// Walks the whole space with one scenario that changes axis by axis; notes what each rule removes.
std::vector<Candidate> generate_candidates(const SearchSpace& space, CostTables& tables, bool tp_across_nodes,
                                           Reasons& reasons);
// Drops what cannot fit, sets the bounds and sorts: best bound first, ties by index.
void bound_candidates(const SearchSpace& space, const CostTables& tables, Objective objective, int threads,
                      std::vector<Candidate>& candidates, Reasons& reasons);

// The step when every kernel takes 5 % less or more than it did in the simulation: the graph is evaluated again with
// those durations. Communication and copies keep the time that they took on the shared links.
void vary_costs(Ranked& ranked);
void mark_pareto(std::vector<Ranked>& ranked);

}  // namespace k3sim
