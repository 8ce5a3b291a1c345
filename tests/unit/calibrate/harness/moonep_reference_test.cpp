// The planner reference reproduces the hand-checked vectors and keeps MoonEP's guarantees on random routings.
#include "calibrate/harness/moonep_reference.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "sim/base/rng.h"

using namespace k3sim;

namespace {

// All entries of an expert come from rank 0 .. in order: only the totals matter for the plan.
std::vector<int> spread(const MoonepShape& s, std::vector<int> totals) {
  std::vector<int> counts(static_cast<std::size_t>(s.ranks * s.experts), 0);
  for (int r = 0; r < s.ranks; ++r) {
    int left = s.entries();
    for (int e = 0; e < s.experts && left > 0; ++e) {
      const int take = std::min(left, totals[static_cast<std::size_t>(e)]);
      counts[static_cast<std::size_t>(r * s.experts + e)] = take;
      totals[static_cast<std::size_t>(e)] -= take;
      left -= take;
    }
  }
  return counts;
}

std::vector<int> row(const std::vector<int>& table, int r, int columns) {
  return {table.begin() + r * columns, table.begin() + (r + 1) * columns};
}

}  // namespace

TEST_CASE("moonep reference: both hand-checked allocations") {
  const MoonepShape s{.ranks = 4, .experts = 8, .tokens = 6, .topk = 1, .pad = 4};
  const auto a = plan_moonep(s, spread(s, {10, 2, 3, 1, 0, 0, 5, 3}));
  CHECK(row(a.alloc, 0, 8) == std::vector<int>{4, 2, 0, 0, 0, 0, 0, 0});
  CHECK(row(a.alloc, 1, 8) == std::vector<int>{0, 0, 3, 1, 0, 0, 2, 0});
  CHECK(row(a.alloc, 2, 8) == std::vector<int>{6, 0, 0, 0, 0, 0, 0, 0});
  CHECK(row(a.alloc, 3, 8) == std::vector<int>{0, 0, 0, 0, 0, 0, 3, 3});
  const auto b = plan_moonep(s, spread(s, {7, 4, 2, 1, 1, 1, 6, 2}));
  CHECK(row(b.alloc, 2, 8) == std::vector<int>{4, 0, 0, 0, 1, 1, 0, 0});
  CHECK(row(b.alloc, 3, 8) == std::vector<int>{0, 1, 0, 0, 0, 0, 3, 2});
  CHECK(row(b.group_start, 3, 8) == std::vector<int>{-1, 8, -1, -1, -1, -1, 0, 4});
  CHECK(row(b.replica_slot, 3, 2) == std::vector<int>{1, -1});
}

TEST_CASE("moonep reference: on random skewed routings every rank is full, and all rows are hit exactly once") {
  const MoonepShape s{.ranks = 8, .experts = 64, .tokens = 128, .topk = 4, .pad = 16};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<std::vector<int>> expert_of(8);
    std::vector<int> counts(8 * 64, 0);
    for (int r = 0; r < 8; ++r)
      for (int i = 0; i < s.entries(); ++i) {
        const double u = random_uniform({seed, 3, static_cast<std::uint64_t>(r)}, static_cast<std::uint64_t>(i));
        const int e = static_cast<int>(64 * u * u * u);
        expert_of[static_cast<std::size_t>(r)].push_back(e);
        ++counts[static_cast<std::size_t>(r * 64 + e)];
      }
    const auto plan = plan_moonep(s, counts);
    std::set<std::int64_t> codes;
    for (int r = 0; r < 8; ++r) {
      const auto mine = row(plan.alloc, r, 64);
      CHECK(std::accumulate(mine.begin(), mine.end(), 0) == s.entries());
      for (const auto code : moonep_rows(s, plan, counts, r, expert_of[static_cast<std::size_t>(r)])) {
        CHECK(codes.insert(code).second);
        CHECK(code % s.capacity_rows() < s.capacity_rows());
        CHECK(code / s.capacity_rows() < 8);
      }
    }
    CHECK(codes.size() == static_cast<std::size_t>(8 * s.entries()));
  }
}

TEST_CASE("moonep reference: a balanced routing moves nothing") {
  const MoonepShape s{.ranks = 4, .experts = 8, .tokens = 8, .topk = 1, .pad = 4};
  const auto plan = plan_moonep(s, std::vector<int>(32, 1));
  for (const int slot : plan.replica_slot) CHECK(slot == -1);
}

TEST_CASE("moonep reference: the receive buffer of K3 has the published size") {
  CHECK(MoonepShape{.ranks = 8, .experts = 896, .tokens = 8192, .topk = 16}.capacity_rows() == 159616);
  CHECK(MoonepShape{.ranks = 64, .experts = 896, .tokens = 8192, .topk = 16}.capacity_rows() == 134656);
}
