// Real token counts from a CSV file: header with the columns rank,expert,tokens and optionally layer,micro_batch, in
// any order. Lines starting with '#' and empty lines are skipped; pairs that are not listed have no tokens. Strict:
// unknown or missing columns, wrong numbers, ranks and experts out of range, repeated pairs and sums beyond 2^31 - 1
// are ConfigErrors with file, line and column, all of a file at once (the first 20 in full). Source: product-spec
// section 7 (moonep --counts), issue of the MoE model (routing from real counts).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/moe/expert_counts.h"
#include "models/moe/routing.h"

namespace k3sim {

struct RoutedCounts {
  MicroBatchId id;  // zeros where the file has no such columns
  ExpertCounts counts;
};

// Sorted by layer, then micro-batch. Requires: experts > 0, ranks > 0.
std::vector<RoutedCounts> parse_counts_csv(std::string_view text, const std::string& file, int experts, int ranks);
std::vector<RoutedCounts> read_counts_csv(const std::string& path, int experts, int ranks);

// What does not fit top-k routing: totals that are no multiple of topk, experts chosen more often than a rank has
// tokens. Empty when everything fits. The planner itself does not need this.
std::vector<std::string> topk_conflicts(const ExpertCounts& counts, int topk);

}  // namespace k3sim
