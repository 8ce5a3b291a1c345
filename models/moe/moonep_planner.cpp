// Steps 1-4 of the MoonEP planner; see the header for the rules.
//   cost: step 2 O(R^2), step 3 O(sum over donors of (E/R + receivers)^2), the rest O(R E)
// Source: k3-facts section 3.3. Valid for R dividing E; broken invariants end in CS_CHECK.
#include "models/moe/moonep_planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"

namespace k3sim {
namespace {

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

std::int64_t align_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Index of the extreme value of [first, last); ties go to the lowest index.
int hottest(const std::vector<std::int64_t>& v) {
  return static_cast<int>(std::max_element(v.begin(), v.end()) - v.begin());
}
int coldest(const std::vector<std::int64_t>& v, int first, int last) {
  return static_cast<int>(std::min_element(v.begin() + first, v.begin() + last) - v.begin());
}

std::vector<std::int64_t> balanced_caps(std::int64_t total, int ranks) {
  std::vector<std::int64_t> cap(sz(ranks), total / ranks);
  for (int r = 0; r < static_cast<int>(total % ranks); ++r) cap[sz(r)] += 1;
  return cap;
}

// With a domain, a receiver of the donor's own domain wins as long as one there is below its cap.
int choose_receiver(const std::vector<std::int64_t>& balance, int donor, int domain_ranks) {
  const int ranks = static_cast<int>(balance.size());
  if (domain_ranks > 0) {
    const int first = donor / domain_ranks * domain_ranks;
    const int local = coldest(balance, first, std::min(ranks, first + domain_ranks));
    if (balance[sz(local)] < 0) return local;
  }
  return coldest(balance, 0, ranks);
}

std::vector<Quota> rank_quotas(std::vector<std::int64_t> balance, std::int64_t tolerated, int domain_ranks) {
  std::vector<Quota> quotas;
  for (;;) {
    const int donor = hottest(balance);
    if (balance[sz(donor)] <= tolerated) return quotas;
    const int receiver = choose_receiver(balance, donor, domain_ranks);
    const std::int64_t rows = -balance[sz(receiver)];
    CS_CHECK(rows > 0, "donor {} has {} rows too many and no rank is below its cap", donor, balance[sz(donor)]);
    quotas.push_back({donor, receiver, rows});
    balance[sz(donor)] -= rows;
    balance[sz(receiver)] = 0;
    CS_CHECK(quotas.size() < balance.size(), "more than R - 1 = {} quotas", balance.size() - 1);
  }
}

// Step 3 for one donor: serve its receivers in ascending rank order of equal quotas, hottest expert first.
void split_donor(MoonepPlan& plan, int donor, std::vector<Quota>& open) {
  const int epn = plan.experts_per_rank();
  std::vector<std::int64_t> left(sz(epn));
  std::int32_t* home = plan.alloc.data() + MoonepPlan::at(donor, donor * epn, plan.experts);
  for (int i = 0; i < epn; ++i) left[sz(i)] = home[i];
  for (;;) {
    auto quota =
        std::max_element(open.begin(), open.end(), [](const Quota& a, const Quota& b) { return a.rows < b.rows; });
    if (quota == open.end() || quota->rows == 0) return;
    const int local = hottest(left);
    const std::int64_t rows = std::min(left[sz(local)], quota->rows);
    CS_CHECK(rows > 0, "donor {} ran out of rows with a quota of {} open", donor, quota->rows);
    home[local] -= static_cast<std::int32_t>(rows);
    plan.alloc[MoonepPlan::at(quota->receiver, donor * epn + local, plan.experts)] += static_cast<std::int32_t>(rows);
    left[sz(local)] -= rows;
    quota->rows -= rows;
  }
}

void split_experts(MoonepPlan& plan) {
  std::vector<Quota> sorted = plan.quotas;
  std::sort(sorted.begin(), sorted.end(), [](const Quota& a, const Quota& b) {
    return a.donor != b.donor ? a.donor < b.donor : a.receiver < b.receiver;
  });
  std::vector<Quota> open;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    open.push_back(sorted[i]);
    if (i + 1 < sorted.size() && sorted[i + 1].donor == sorted[i].donor) continue;
    split_donor(plan, sorted[i].donor, open);
    open.clear();
  }
}

// Foreign experts of a rank in the order of their slots.
std::vector<int> slot_order(const MoonepPlan& plan, int rank, GroupLayout layout) {
  std::vector<int> foreign;
  const int own_begin = rank * plan.experts_per_rank(), own_end = own_begin + plan.experts_per_rank();
  const std::int32_t* rows = plan.alloc.data() + MoonepPlan::at(rank, 0, plan.experts);
  for (int e = 0; e < plan.experts; ++e) {
    if (rows[e] > 0 && (e < own_begin || e >= own_end)) foreign.push_back(e);
  }
  if (layout == GroupLayout::kGlobalPositions) {
    std::sort(foreign.begin(), foreign.end(),
              [rows](int a, int b) { return rows[a] != rows[b] ? rows[a] > rows[b] : a > b; });
    if (foreign.size() > sz(plan.slots_per_rank)) foreign.resize(sz(plan.slots_per_rank));
  }
  return foreign;
}

// Appends groups one after the other and records start, padded end and padding rows.
class GroupWriter {
 public:
  GroupWriter(MoonepPlan& plan, int rank, int pad) : plan_(plan), rank_(rank), pad_(pad) {}

  void add(int expert) {
    const std::int64_t rows = expert < 0 ? 0 : plan_.alloc_at(rank_, expert);
    const std::int64_t end = row_ + align_up(rows, pad_);
    if (rows > 0) plan_.group_start[MoonepPlan::at(rank_, expert, plan_.experts)] = static_cast<std::int32_t>(row_);
    plan_.zero_fill[MoonepPlan::at(rank_, group_, plan_.groups_per_rank)] = {row_ + rows, end};
    plan_.cu_seqlens[MoonepPlan::at(rank_, group_, plan_.groups_per_rank)] = static_cast<std::int32_t>(end);
    row_ = end;
    ++group_;
  }
  std::int64_t end() const { return row_; }

 private:
  MoonepPlan& plan_;
  int rank_;
  int pad_;
  int group_ = 0;
  std::int64_t row_ = 0;
};

void lay_out_rank(MoonepPlan& plan, int rank, const PlannerOptions& options) {
  const std::vector<int> slots = slot_order(plan, rank, options.layout);
  CS_CHECK(slots.size() <= sz(plan.slots_per_rank), "rank {} needs {} replicas but has {} slots", rank, slots.size(),
           plan.slots_per_rank);
  GroupWriter groups(plan, rank, options.pad_rows);
  if (options.layout == GroupLayout::kReplicaSlots) {
    const int own = rank * plan.experts_per_rank();
    for (int i = 0; i < plan.experts_per_rank(); ++i) groups.add(own + i);
  } else {
    for (int e = 0; e < plan.experts; ++e) {
      const bool in_slot = std::find(slots.begin(), slots.end(), e) != slots.end();
      groups.add(in_slot ? -1 : e);
    }
  }
  for (int i = 0; i < plan.slots_per_rank; ++i) {
    const int expert = sz(i) < slots.size() ? slots[sz(i)] : -1;
    groups.add(expert);
    plan.experts_to_copy[MoonepPlan::at(rank, i, plan.slots_per_rank)] = expert;
    if (expert >= 0) plan.replicas_sent[sz(plan.owner(expert))] += 1;
  }
  plan.replicas_received[sz(rank)] = static_cast<std::int32_t>(slots.size());
  CS_CHECK(groups.end() <= plan.row_capacity, "rank {} needs {} rows but its buffer has {}", rank, groups.end(),
           plan.row_capacity);
}

MoonepPlan empty_plan(const ExpertCounts& counts, const PlannerOptions& options) {
  MoonepPlan plan;
  plan.experts = counts.experts;
  plan.ranks = counts.ranks;
  const bool slots_only = options.layout == GroupLayout::kReplicaSlots;
  plan.slots_per_rank = slots_only ? plan.experts_per_rank() : options.global_layout_slots;
  plan.groups_per_rank = (slots_only ? plan.experts_per_rank() : plan.experts) + plan.slots_per_rank;
  const std::size_t groups = sz(plan.ranks) * sz(plan.groups_per_rank);
  plan.alloc.assign(sz(plan.ranks) * sz(plan.experts), 0);
  plan.group_start.assign(plan.alloc.size(), -1);
  plan.cu_seqlens.assign(groups, 0);
  plan.zero_fill.assign(groups, {});
  plan.experts_to_copy.assign(sz(plan.ranks) * sz(plan.slots_per_rank), -1);
  plan.replicas_received.assign(sz(plan.ranks), 0);
  plan.replicas_sent.assign(sz(plan.ranks), 0);
  return plan;
}

}  // namespace

std::int64_t receive_buffer_rows(std::int64_t capacity_rows, int experts_per_rank, int pad_rows) {
  return align_up(capacity_rows + (pad_rows - 1) * std::int64_t{2} * experts_per_rank, pad_rows);
}

MoonepPlan plan_moonep(const ExpertCounts& counts, const PlannerOptions& options) {
  CS_CHECK(counts.ranks > 0 && counts.experts > 0 && counts.experts % counts.ranks == 0,
           "{} experts cannot be owned evenly by {} ranks", counts.experts, counts.ranks);
  CS_CHECK(options.pad_rows > 0 && options.tolerance >= 0, "padding of {} rows, tolerance {}", options.pad_rows,
           options.tolerance);
  MoonepPlan plan = empty_plan(counts, options);
  const std::vector<std::int64_t> by_expert = counts.per_expert();
  std::vector<std::int64_t> balance(sz(plan.ranks), 0);
  for (int e = 0; e < plan.experts; ++e) {
    const int home = plan.owner(e);
    plan.alloc[MoonepPlan::at(home, e, plan.experts)] = static_cast<std::int32_t>(by_expert[sz(e)]);
    balance[sz(home)] += by_expert[sz(e)];
  }
  plan.cap = balanced_caps(std::accumulate(balance.begin(), balance.end(), std::int64_t{0}), plan.ranks);
  for (int r = 0; r < plan.ranks; ++r) balance[sz(r)] -= plan.cap[sz(r)];
  const std::int64_t capacity = options.capacity_rows > 0 ? options.capacity_rows : plan.cap.front();
  CS_CHECK(capacity >= plan.cap.front(), "{} rows per rank do not fit a buffer of {}", plan.cap.front(), capacity);
  const auto slack = [&](std::int64_t rows) {
    return static_cast<std::int64_t>(std::floor(options.tolerance * static_cast<double>(rows)));
  };
  plan.row_capacity = receive_buffer_rows(capacity + slack(capacity), plan.experts_per_rank(), options.pad_rows);
  plan.quotas = rank_quotas(balance, slack(plan.cap.back()), options.domain_ranks);
  split_experts(plan);
  for (int r = 0; r < plan.ranks; ++r) lay_out_rank(plan, r, options);
  return plan;
}

std::int64_t MoonepPlan::rows(int rank) const {
  const auto begin = alloc.begin() + static_cast<std::ptrdiff_t>(at(rank, 0, experts));
  return std::accumulate(begin, begin + experts, std::int64_t{0});
}

std::int64_t MoonepPlan::moved_rows() const {
  std::int64_t moved = 0;
  for (int r = 0; r < ranks; ++r) {
    const auto own = alloc.begin() + static_cast<std::ptrdiff_t>(at(r, r * experts_per_rank(), experts));
    moved += rows(r) - std::accumulate(own, own + experts_per_rank(), std::int64_t{0});
  }
  return moved;
}

int MoonepPlan::foreign_experts(int rank) const {
  int count = 0;
  for (int e = 0; e < experts; ++e) count += owner(e) != rank && alloc_at(rank, e) > 0 ? 1 : 0;
  return count;
}

}  // namespace k3sim
