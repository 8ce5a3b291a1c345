// MoonEP's placement of rows, computed on the host, as the reference that the GPU planner is checked against.
//   loads -> rank quotas (fullest donor to emptiest receiver) -> split by expert -> layout per destination -> row of
//   every entry. Ties go to the lowest rank and the lowest expert; every rank ends with exactly tokens * topk rows.
// Source: k3-facts.md sections 3.2-3.4 (algorithm in steps 1-5, invariants). Valid when every rank routes the same
// number of entries. The duplicate bookkeeping (step 6) is left to the kernels that use it.
#pragma once

#include <cstdint>
#include <vector>

namespace k3sim {

struct MoonepShape {
  int ranks = 0;
  int experts = 0;  // multiple of ranks
  int tokens = 0;   // per rank
  int topk = 0;
  int pad = 128;  // rows per group are padded to a multiple
  constexpr int per_rank() const { return experts / ranks; }
  constexpr int entries() const { return tokens * topk; }
  // Rows of a rank's receive buffer, padding included.
  constexpr int capacity_rows() const { return (entries() + (pad - 1) * 2 * per_rank() + pad - 1) / pad * pad; }
};

struct MoonepPlan {
  std::vector<int> alloc;         // [rank][expert] rows of that expert computed on that rank
  std::vector<int> group_start;   // [rank][expert] first row of the expert's group on that rank, -1 if it has none
  std::vector<int> replica_slot;  // [rank][slot] expert copied into the slot, -1 if unused
};

// counts[source][expert]; sums to entries() for every source. Requires: shape is consistent.
MoonepPlan plan_moonep(const MoonepShape& shape, const std::vector<int>& counts);

// Destination code of every entry of one source rank: dest_rank * capacity_rows + row.
// expert_of[i] is the expert of flat entry i of `source`; counts as above.
std::vector<std::int64_t> moonep_rows(const MoonepShape& shape, const MoonepPlan& plan, const std::vector<int>& counts,
                                      int source, const std::vector<int>& expert_of);

}  // namespace k3sim
