// MoonEP row addresses and de-duplication (steps 5-6 of the planner).
//   g    = rows of the expert from lower source ranks + stable index among this rank's own entries
//   dest = first rank d, in rank order, with sum_{d' <= d} alloc[d'][e] > g
//   row  = group_start[d][e] + g - sum_{d' < d} alloc[d'][e];   code = d * row_capacity + row
// Per token and destination the lowest k is the primary and crosses the network; the others are stored as -code - 1
// and are expanded locally.
// Source: k3-facts section 3.3, steps 5 and 6. Valid while ranks * row_capacity < 2^31.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/moe/moonep_planner.h"

namespace k3sim {

struct RowAddress {
  int rank = 0;
  std::int64_t row = 0;
  bool primary = true;  // false: a duplicate of an earlier k of the same token on the same rank
};

// Destination codes of one source rank. expert_ids holds s * topk expert ids, token-major.
// Requires: expert_ids agrees with counts.at(source_rank, *) and counts with the plan.
std::vector<std::int32_t> address_rows(const MoonepPlan& plan, const ExpertCounts& counts, int source_rank,
                                       std::span<const std::int32_t> expert_ids, int topk);

RowAddress decode(const MoonepPlan& plan, std::int32_t code);

// The rows of one destination rank that are copies of another row of it.
struct DuplicateGroup {
  std::int64_t primary_row = 0;
  std::vector<std::int64_t> duplicate_rows;
  friend bool operator==(const DuplicateGroup&, const DuplicateGroup&) = default;
};

// codes: the address_rows results of all source ranks; groups come in source rank, token, k order.
std::vector<DuplicateGroup> duplicate_groups(const MoonepPlan& plan, std::span<const std::vector<std::int32_t>> codes,
                                             int topk, int dest_rank);

// Mean number of distinct destination ranks per token ("U"), from the codes: primaries / tokens.
double mean_distinct_ranks(std::span<const std::vector<std::int32_t>> codes, int topk);

}  // namespace k3sim
