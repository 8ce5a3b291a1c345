// Every invariant of a MoonEP plan on 10,000 generated inputs: random sizes, adversarial skews, uneven token numbers.
// Source: k3-facts section 3.4 (numbers in the checks below) and theorem 1 of section 3.1.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/moe/moonep_planner.h"
#include "models/moe/moonep_rows.h"
#include "sim/base/rng.h"

using namespace k3sim;

namespace {

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

class Dice {
 public:
  explicit Dice(std::uint64_t entity) : key_{7, 0x6d6f65, entity} {}
  int below(int n) { return static_cast<int>(random_below(key_, next_++, static_cast<std::uint64_t>(n))); }
  int between(int low, int high) { return low + below(high - low + 1); }

 private:
  RandomKey key_;
  std::uint64_t next_ = 0;
};

struct Input {
  int topk = 1;
  ExpertCounts counts;
  std::vector<std::vector<std::int32_t>> ids;  // per source rank
  PlannerOptions options;
};

// Six skews: uniform, one hot expert, one hot rank, one starved rank, a staircase, two hot ranks far apart.
int draw_expert(Dice& dice, int skew, int experts, int epn) {
  const int any = dice.below(experts);
  switch (skew) {
    case 1:
      return dice.below(4) > 0 ? experts - 1 : any;
    case 2:
      return dice.below(5) > 0 ? dice.below(epn) : any;
    case 3:
      return any < epn && experts > epn ? epn + dice.below(experts - epn) : any;
    case 4:
      return std::min(any, dice.below(experts));
    case 5:
      return dice.below(2) > 0 ? (dice.below(2) > 0 ? dice.below(epn) : experts - 1 - dice.below(epn)) : any;
    default:
      return any;
  }
}

Input make_input(std::uint64_t seed) {
  Dice dice(seed);
  const bool large = seed % 50 == 0;
  const int ranks = large ? 1 << dice.between(3, 6) : dice.between(1, 12);
  const int epn = large ? 896 / ranks : dice.between(1, 6);
  const int experts = ranks * epn;
  Input in;
  in.topk = dice.between(1, std::min(experts, large ? 16 : 5));
  in.counts = ExpertCounts(ranks, experts);
  in.ids.resize(sz(ranks));
  const int skew = dice.below(6), tokens = dice.between(0, large ? 40 : 12);
  const bool uneven = dice.below(3) == 0;
  std::vector<int> chosen(sz(in.topk));
  for (int r = 0; r < ranks; ++r) {
    const int mine = uneven ? dice.below(tokens + 1) : tokens;
    for (int t = 0; t < mine; ++t) {
      for (int k = 0; k < in.topk; ++k) {
        int e = draw_expert(dice, skew, experts, epn);
        const auto end = chosen.begin() + k;
        while (std::find(chosen.begin(), end, e) != end) e = (e + 1) % experts;  // distinct experts per token
        chosen[sz(k)] = e;
        in.ids[sz(r)].push_back(e);
        ++in.counts.at(r, e);
      }
    }
  }
  in.options.pad_rows = std::vector<int>{1, 4, 16, 128}[sz(dice.below(4))];
  in.options.domain_ranks = dice.below(4) == 0 ? dice.between(1, ranks) : 0;
  if (dice.below(5) == 0) {
    in.options.layout = GroupLayout::kGlobalPositions;
    in.options.global_layout_slots = dice.below(epn + 1);
  }
  return in;
}

// Invariants 1 and 3.
void check_rows(const Input& in, const MoonepPlan& plan) {
  const std::vector<std::int64_t> wanted = in.counts.per_expert();
  std::vector<std::int64_t> given(wanted.size(), 0);
  bool balanced = true, exact = true, non_negative = true;
  const std::vector<std::int64_t> load = in.counts.per_owner_rank();
  for (int r = 0; r < plan.ranks; ++r) {
    exact = exact && plan.rows(r) == plan.cap[sz(r)];
    balanced = balanced && load[sz(r)] == plan.cap[sz(r)];
    for (int e = 0; e < plan.experts; ++e) {
      non_negative = non_negative && plan.alloc_at(r, e) >= 0;
      given[sz(e)] += plan.alloc_at(r, e);
    }
  }
  const auto [low, high] = std::minmax_element(plan.cap.begin(), plan.cap.end());
  REQUIRE(non_negative);
  REQUIRE(exact);
  REQUIRE(given == wanted);
  REQUIRE(*high - *low <= 1);
  if (balanced) REQUIRE(plan.moved_rows() == 0);
}

// Invariant 2, the theorem, and invariant 8.
void check_replicas(const Input& in, const MoonepPlan& plan) {
  const int epn = plan.experts_per_rank();
  std::int64_t sent = 0, received = 0;
  for (int r = 0; r < plan.ranks; ++r) {
    int donor = -1;
    for (int e = 0; e < plan.experts; ++e) {
      if (plan.alloc_at(r, e) == 0 || plan.owner(e) == r) continue;
      REQUIRE((donor == -1 || donor == plan.owner(e)));
      donor = plan.owner(e);
    }
    const int foreign = plan.foreign_experts(r);
    REQUIRE(foreign <= epn);
    int slots = 0;
    for (int s = 0; s < plan.slots_per_rank; ++s) {
      const std::int32_t e = plan.slot_at(r, s);
      if (e < 0) continue;
      ++slots;
      REQUIRE((plan.owner(e) != r && plan.alloc_at(r, e) > 0));
    }
    REQUIRE(slots == plan.replicas_received[sz(r)]);
    REQUIRE(slots == std::min(foreign, plan.slots_per_rank));
    received += slots;
    sent += plan.replicas_sent[sz(r)];
  }
  REQUIRE(sent == received);
  REQUIRE(in.counts.ranks == plan.ranks);
}

// Invariant 5: padded ends, and real plus padding rows tile the buffer.
void check_layout(const Input& in, const MoonepPlan& plan) {
  const int pad = in.options.pad_rows;
  for (int r = 0; r < plan.ranks; ++r) {
    std::int32_t previous = 0;
    std::int64_t padding = 0;
    for (int g = 0; g < plan.groups_per_rank; ++g) {
      const std::int32_t end = plan.cu_seqlen_at(r, g);
      REQUIRE((end >= previous && end % pad == 0));
      const RowRange& fill = plan.zero_fill_at(r, g);
      REQUIRE((fill.end == end && fill.begin >= previous && fill.end - fill.begin < pad));
      padding += fill.end - fill.begin;
      previous = end;
    }
    REQUIRE(previous <= plan.row_capacity);
    REQUIRE(previous == plan.rows(r) + padding);
  }
}

// Invariants 6 and 7: all entries together hit each real row once, the first k per destination is the primary.
void check_addresses(const Input& in, const MoonepPlan& plan) {
  std::vector<std::uint8_t> hit(sz(plan.ranks) * static_cast<std::size_t>(plan.row_capacity), 0);
  for (int r = 0; r < plan.ranks; ++r) {
    for (int g = 0; g < plan.groups_per_rank; ++g) {
      const RowRange& fill = plan.zero_fill_at(r, g);
      for (std::int64_t row = fill.begin; row < fill.end; ++row)
        ++hit[static_cast<std::size_t>(r * plan.row_capacity + row)];
    }
  }
  std::int64_t entries = 0;
  std::vector<int> seen(sz(plan.ranks), -1);
  int token = 0;
  for (int r = 0; r < plan.ranks; ++r) {
    const std::vector<std::int32_t>& ids = in.ids[sz(r)];
    const std::vector<std::int32_t> codes = address_rows(plan, in.counts, r, ids, in.topk);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (i % sz(in.topk) == 0) ++token;
      const RowAddress a = decode(plan, codes[i]);
      ++hit[static_cast<std::size_t>(a.rank * plan.row_capacity + a.row)];
      const std::int64_t start = plan.start_at(a.rank, ids[i]);
      REQUIRE((start >= 0 && a.row >= start && a.row < start + plan.alloc_at(a.rank, ids[i])));
      REQUIRE(a.primary == (seen[sz(a.rank)] != token));
      seen[sz(a.rank)] = token;
      ++entries;
    }
  }
  std::int64_t covered = 0;
  for (int r = 0; r < plan.ranks; ++r) covered += plan.cu_seqlen_at(r, plan.groups_per_rank - 1);
  REQUIRE(std::all_of(hit.begin(), hit.end(), [](std::uint8_t h) { return h <= 1; }));
  REQUIRE(std::accumulate(hit.begin(), hit.end(), std::int64_t{0}) == covered);
  REQUIRE(entries == in.counts.total());
}

}  // namespace

TEST_CASE("moonep: all invariants hold on 10,000 generated inputs") {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    CAPTURE(seed);
    const Input in = make_input(seed);
    const MoonepPlan plan = plan_moonep(in.counts, in.options);
    check_rows(in, plan);
    check_replicas(in, plan);
    check_layout(in, plan);
    check_addresses(in, plan);
    if (in.options.domain_ranks == 0) REQUIRE(plan.quotas.size() < sz(plan.ranks));
  }
}

TEST_CASE("moonep: a starved rank among equal ones forces the bound of theorem 2") {
  // One rank's experts get nothing, all others equal: at least ceil(E (R-1) / R^2) foreign experts somewhere.
  constexpr int kRanks = 64, kExperts = 896, kRowsPerExpert = 640;
  ExpertCounts counts(kRanks, kExperts);
  for (int e = kExperts / kRanks; e < kExperts; ++e) counts.at(e % kRanks, e) = kRowsPerExpert;
  const MoonepPlan plan = plan_moonep(counts);
  CHECK(plan.foreign_experts(0) == 14);
  CHECK(plan.rows(0) == plan.cap[0]);
}

TEST_CASE("moonep: a tolerance moves fewer rows and never exceeds the tolerated load") {
  for (std::uint64_t seed = 1; seed < 400; ++seed) {
    CAPTURE(seed);
    Input in = make_input(seed);
    in.options.layout = GroupLayout::kReplicaSlots;
    const MoonepPlan strict = plan_moonep(in.counts, in.options);
    in.options.tolerance = 0.2;
    const MoonepPlan loose = plan_moonep(in.counts, in.options);
    REQUIRE(loose.moved_rows() <= strict.moved_rows());
    REQUIRE(loose.quotas.size() <= strict.quotas.size());
    for (int r = 0; r < loose.ranks; ++r) {
      REQUIRE(static_cast<double>(loose.rows(r)) <= 1.2 * static_cast<double>(loose.cap[sz(r)]) + 1.0);
    }
    check_replicas(in, loose);
    check_layout(in, loose);
  }
}

TEST_CASE("moonep: a domain keeps donations at home while a local rank is below its cap") {
  // Ranks 0-1 and 2-3 are domains. Rank 0 is hot by 4; rank 1 lacks 1, rank 3 lacks 3.
  ExpertCounts counts(4, 4);
  counts.at(0, 0) = 14;
  counts.at(1, 1) = 9;
  counts.at(2, 2) = 10;
  counts.at(3, 3) = 7;
  PlannerOptions options;
  options.domain_ranks = 2;
  CHECK(plan_moonep(counts, options).quotas == std::vector<Quota>{{0, 1, 1}, {0, 3, 3}});
  options.domain_ranks = 0;
  CHECK(plan_moonep(counts, options).quotas == std::vector<Quota>{{0, 3, 3}, {0, 1, 1}});
}
