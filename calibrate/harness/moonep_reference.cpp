// Steps 1 to 5 of the MoonEP planner in plain loops.
// Source: k3-facts.md section 3.3.
#include "calibrate/harness/moonep_reference.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

namespace {

std::size_t at(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

int index_of_max(const std::vector<int>& v) {
  return static_cast<int>(std::max_element(v.begin(), v.end()) - v.begin());
}

// Step 2: rows that each donor hands to each receiver.
std::vector<int> rank_quotas(const MoonepShape& shape, std::vector<int> balance) {
  std::vector<int> quota(at(shape.ranks, 0, shape.ranks), 0);
  for (;;) {
    const int donor = index_of_max(balance);
    const int receiver = static_cast<int>(std::min_element(balance.begin(), balance.end()) - balance.begin());
    int& surplus = balance[static_cast<std::size_t>(donor)];
    int& deficit = balance[static_cast<std::size_t>(receiver)];
    if (surplus <= 0) return quota;
    quota[at(donor, receiver, shape.ranks)] = -deficit;
    surplus += deficit;
    deficit = 0;
  }
}

// Step 3: for one donor, which experts' rows go where.
void split_by_expert(const MoonepShape& shape, int donor, std::vector<int> quota, std::vector<int>& alloc) {
  const int first = donor * shape.per_rank();
  std::vector<int> remaining;
  for (int e = first; e < first + shape.per_rank(); ++e) remaining.push_back(alloc[at(donor, e, shape.experts)]);
  for (;;) {
    const int d = index_of_max(quota);
    int& want = quota[static_cast<std::size_t>(d)];
    if (want <= 0) return;
    const int local = index_of_max(remaining);
    int& have = remaining[static_cast<std::size_t>(local)];
    const int moved = std::min(have, want);
    CS_CHECK(moved > 0, "donor {} has no rows left for rank {} which still wants {}", donor, d, want);
    alloc[at(donor, first + local, shape.experts)] -= moved;
    alloc[at(d, first + local, shape.experts)] += moved;
    have -= moved;
    want -= moved;
  }
}

// Step 4: own experts in order, then replica slots by ascending expert; every group padded.
void lay_out(const MoonepShape& shape, int rank, MoonepPlan& plan) {
  int row = 0, slot = 0;
  const auto place = [&](int e) {
    const int rows = plan.alloc[at(rank, e, shape.experts)];
    if (rows == 0) return;
    plan.group_start[at(rank, e, shape.experts)] = row;
    row += (rows + shape.pad - 1) / shape.pad * shape.pad;
  };
  const int first = rank * shape.per_rank(), last = first + shape.per_rank();
  for (int e = first; e < last; ++e) place(e);
  for (int e = 0; e < shape.experts; ++e) {
    if ((e >= first && e < last) || plan.alloc[at(rank, e, shape.experts)] == 0) continue;
    CS_CHECK(slot < shape.per_rank(), "rank {} needs more than {} replicas", rank, shape.per_rank());
    plan.replica_slot[at(rank, slot++, shape.per_rank())] = e;
    place(e);
  }
}

}  // namespace

MoonepPlan plan_moonep(const MoonepShape& shape, const std::vector<int>& counts) {
  CS_CHECK(shape.experts % shape.ranks == 0 && counts.size() == at(shape.ranks, 0, shape.experts), "shape");
  MoonepPlan plan;
  plan.alloc.assign(counts.size(), 0);
  plan.group_start.assign(counts.size(), -1);
  plan.replica_slot.assign(at(shape.ranks, 0, shape.per_rank()), -1);
  std::vector<int> balance(static_cast<std::size_t>(shape.ranks), -shape.entries());
  for (int e = 0; e < shape.experts; ++e) {
    const int home = e / shape.per_rank();
    for (int r = 0; r < shape.ranks; ++r) plan.alloc[at(home, e, shape.experts)] += counts[at(r, e, shape.experts)];
    balance[static_cast<std::size_t>(home)] += plan.alloc[at(home, e, shape.experts)];
  }
  const std::vector<int> quota = rank_quotas(shape, balance);
  for (int donor = 0; donor < shape.ranks; ++donor) {
    const auto begin = quota.begin() + donor * shape.ranks;
    split_by_expert(shape, donor, {begin, begin + shape.ranks}, plan.alloc);
  }
  for (int r = 0; r < shape.ranks; ++r) lay_out(shape, r, plan);
  return plan;
}

std::vector<std::int64_t> moonep_rows(const MoonepShape& shape, const MoonepPlan& plan, const std::vector<int>& counts,
                                      int source, const std::vector<int>& expert_of) {
  std::vector<int> next(static_cast<std::size_t>(shape.experts), 0);  // global index of the expert's next entry
  for (int e = 0; e < shape.experts; ++e)
    for (int r = 0; r < source; ++r) next[static_cast<std::size_t>(e)] += counts[at(r, e, shape.experts)];
  std::vector<std::int64_t> code;
  code.reserve(expert_of.size());
  for (const int e : expert_of) {
    int g = next[static_cast<std::size_t>(e)]++;
    int d = 0;
    while (g >= plan.alloc[at(d, e, shape.experts)]) g -= plan.alloc[at(d++, e, shape.experts)];
    code.push_back(static_cast<std::int64_t>(d) * shape.capacity_rows() + plan.group_start[at(d, e, shape.experts)] +
                   g);
  }
  return code;
}

}  // namespace k3sim
