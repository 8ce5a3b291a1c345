// The reports of `plan`: the ranking of layouts with its reasons, and of `plan --fit`: the fewest nodes per GPU type,
// what binds, what would free memory, and the frontier. Source: product-spec section 2; engine-design sections 16
// and 18.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/fit_frontier.h"
#include "tools/planner/search.h"
#include "tools/report/html_page.h"

namespace k3sim {

HtmlPage plan_page(const SearchSpace& space, const SearchResult& result, const std::string& command);
HtmlPage fit_page(const SearchSpace& space, const std::vector<FitAnswer>& answers,
                  const std::vector<FrontierPoint>& frontier, const std::string& command);

}  // namespace k3sim
