// The hand-checked planner vectors: E = 8, R = 4, cap = 6. Source: k3-facts section 3.5.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "models/moe/moonep_planner.h"
#include "models/moe/moonep_rows.h"

using namespace k3sim;

namespace {

// Rows of every expert come from rank (expert mod 4); the plan depends on the sums only.
ExpertCounts spread(const std::vector<std::int32_t>& per_expert) {
  ExpertCounts counts(4, 8);
  for (int e = 0; e < 8; ++e) {
    for (int i = 0; i < per_expert[static_cast<std::size_t>(e)]; ++i) ++counts.at((e + i) % 4, e);
  }
  return counts;
}

}  // namespace

TEST_CASE("moonep vector 1: one hot owner fills the idle rank, another tops up the third") {
  const MoonepPlan plan = plan_moonep(spread({10, 2, 3, 1, 0, 0, 5, 3}));
  CHECK(plan.quotas == std::vector<Quota>{{0, 2, 6}, {3, 1, 2}});
  CHECK(plan.alloc == std::vector<std::int32_t>{4, 2, 0, 0, 0, 0, 0, 0,  //
                                                0, 0, 3, 1, 0, 0, 2, 0,  //
                                                6, 0, 0, 0, 0, 0, 0, 0,  //
                                                0, 0, 0, 0, 0, 0, 3, 3});
  CHECK(plan.experts_to_copy == std::vector<std::int32_t>{-1, -1, 6, -1, 0, -1, -1, -1});
  CHECK(plan.replicas_received == std::vector<std::int32_t>{0, 1, 1, 0});
  CHECK(plan.replicas_sent == std::vector<std::int32_t>{1, 0, 0, 1});
}

TEST_CASE("moonep vector 2: a donor that gave too much becomes a receiver") {
  PlannerOptions options;
  options.pad_rows = 4;
  const MoonepPlan plan = plan_moonep(spread({7, 4, 2, 1, 1, 1, 6, 2}), options);
  CHECK(plan.quotas == std::vector<Quota>{{0, 2, 4}, {3, 1, 3}, {0, 3, 1}});
  CHECK(plan.alloc == std::vector<std::int32_t>{3, 3, 0, 0, 0, 0, 0, 0,  //
                                                0, 0, 2, 1, 0, 0, 3, 0,  //
                                                4, 0, 0, 0, 1, 1, 0, 0,  //
                                                0, 1, 0, 0, 0, 0, 3, 2});
  // Rank 3: e6 has 3 rows, e7 has 2, slot 0 holds e1 with 1; each padded to 4.
  CHECK(plan.cu_seqlen_at(3, 0) == 4);
  CHECK(plan.cu_seqlen_at(3, 1) == 8);
  CHECK(plan.cu_seqlen_at(3, 2) == 12);
  CHECK(plan.cu_seqlen_at(3, 3) == 12);
  CHECK(plan.zero_fill_at(3, 0) == RowRange{3, 4});
  CHECK(plan.zero_fill_at(3, 1) == RowRange{6, 8});
  CHECK(plan.zero_fill_at(3, 2) == RowRange{9, 12});
  CHECK(plan.zero_fill_at(3, 3) == RowRange{12, 12});
  CHECK(plan.slot_at(3, 0) == 1);
  CHECK(plan.slot_at(3, 1) == -1);
  CHECK(plan.start_at(3, 1) == 8);
}

TEST_CASE("moonep older layout: the foreign expert with most rows gets the slot, the rest stay in place") {
  // Rank 1 owns e2, e3 (nothing routed) and receives 4 rows each of e0 and e1: the tie goes to the larger id.
  ExpertCounts counts(2, 4);
  counts.at(0, 0) = 8;
  counts.at(1, 1) = 8;
  PlannerOptions options;
  options.pad_rows = 4;
  options.layout = GroupLayout::kGlobalPositions;
  options.global_layout_slots = 1;
  const MoonepPlan plan = plan_moonep(counts, options);
  REQUIRE(plan.groups_per_rank == 5);
  CHECK(plan.alloc == std::vector<std::int32_t>{0, 8, 0, 0, 8, 0, 0, 0});
  CHECK(plan.slot_at(1, 0) == 0);
  CHECK(plan.cu_seqlen_at(1, 0) == 0);  // in the slot, so its global position is empty
  CHECK(plan.cu_seqlen_at(1, 4) == 8);
  CHECK(plan.start_at(1, 0) == 0);
}

TEST_CASE("moonep older layout: ties between foreign experts go to the larger id") {
  // Rank 0 owns three hot experts; rank 1 must take 12 rows: 6 of e0, 6 of e1.
  ExpertCounts counts(2, 6);
  counts.at(0, 0) = 6;
  counts.at(0, 1) = 6;
  counts.at(1, 2) = 4;
  PlannerOptions options;
  options.pad_rows = 2;
  options.layout = GroupLayout::kGlobalPositions;
  options.global_layout_slots = 1;
  const MoonepPlan plan = plan_moonep(counts, options);
  CHECK(plan.alloc_at(1, 0) == 6);
  CHECK(plan.alloc_at(1, 1) == 2);
  CHECK(plan.slot_at(1, 0) == 0);
  CHECK(plan.start_at(1, 1) == 0);  // read remotely from its global position, before the slots
  CHECK(plan.start_at(1, 0) == 2);
  CHECK(plan.replicas_received[1] == 1);
}

TEST_CASE("moonep rows: source ranks fill an expert in rank order and the lowest k is the primary") {
  // Two ranks, four experts, top-2; two tokens each.
  const std::vector<std::vector<std::int32_t>> ids{{0, 1, 0, 2}, {0, 1, 3, 0}};
  ExpertCounts counts(2, 4);
  for (int r = 0; r < 2; ++r) {
    for (const std::int32_t e : ids[static_cast<std::size_t>(r)]) ++counts.at(r, e);
  }
  PlannerOptions options;
  options.pad_rows = 2;
  const MoonepPlan plan = plan_moonep(counts, options);
  REQUIRE(plan.cap == std::vector<std::int64_t>{4, 4});
  REQUIRE(plan.alloc == std::vector<std::int32_t>{2, 2, 0, 0, 2, 0, 1, 1});
  REQUIRE(plan.row_capacity == 8);  // align_up(4 + 1 * 2 * 2, 2)
  // Rank 0: token 0 -> e0 row 0 (primary), e1 row 2 (duplicate); token 1 -> e0 row 1, e2 on rank 1 row 0.
  CHECK(address_rows(plan, counts, 0, ids[0], 2) == std::vector<std::int32_t>{0, -3, 1, 8});
  // Rank 1: e0 rows 2, 3 of the global order fall on rank 1, slot rows 4, 5; token 1's e0 duplicates its e3.
  CHECK(address_rows(plan, counts, 1, ids[1], 2) == std::vector<std::int32_t>{12, 3, 10, -14});
  const std::vector<std::vector<std::int32_t>> codes{address_rows(plan, counts, 0, ids[0], 2),
                                                     address_rows(plan, counts, 1, ids[1], 2)};
  CHECK(duplicate_groups(plan, codes, 2, 0) == std::vector<DuplicateGroup>{{0, {2}}});
  CHECK(duplicate_groups(plan, codes, 2, 1) == std::vector<DuplicateGroup>{{2, {5}}});
  CHECK(mean_distinct_ranks(codes, 2) == doctest::Approx(1.5));
}
