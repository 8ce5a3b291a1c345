// Row addresses by one pass over the entries of a source rank with a cursor per expert: O(R E + s K).
// The cursor stands where the entries of lower source ranks end and only moves forward.
// Source: k3-facts section 3.3, steps 5 and 6. Valid while ranks * row_capacity < 2^31 (checked).
#include "models/moe/moonep_rows.h"

#include <limits>

#include "sim/base/check.h"

namespace k3sim {
namespace {

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

// Where the next row of one expert goes: `left` rows remain on `rank` from `row` on.
struct Cursor {
  int rank = 0;
  std::int64_t left = 0;
  std::int64_t row = 0;
};

// Moves the cursor to the first rank with rows left.
void settle(const MoonepPlan& plan, int expert, Cursor& c) {
  while (c.left == 0) {
    ++c.rank;
    CS_CHECK(c.rank < plan.ranks, "expert {} has more entries than the plan gave it rows", expert);
    c.left = plan.alloc_at(c.rank, expert);
    c.row = plan.start_at(c.rank, expert);
  }
}

std::vector<Cursor> cursors_after_lower_ranks(const MoonepPlan& plan, const ExpertCounts& counts, int source_rank) {
  std::vector<Cursor> cursors(sz(plan.experts));
  for (int e = 0; e < plan.experts; ++e) {
    std::int64_t skip = 0;
    for (int r = 0; r < source_rank; ++r) skip += counts.at(r, e);
    Cursor& c = cursors[sz(e)];
    c = {0, plan.alloc_at(0, e), plan.start_at(0, e)};
    while (skip > 0) {
      settle(plan, e, c);
      const std::int64_t step = std::min(skip, c.left);
      c.left -= step;
      c.row += step;
      skip -= step;
    }
  }
  return cursors;
}

}  // namespace

std::vector<std::int32_t> address_rows(const MoonepPlan& plan, const ExpertCounts& counts, int source_rank,
                                       std::span<const std::int32_t> expert_ids, int topk) {
  CS_CHECK(plan.ranks * plan.row_capacity < std::numeric_limits<std::int32_t>::max(),
           "{} ranks x {} rows do not fit 31-bit codes", plan.ranks, plan.row_capacity);
  CS_CHECK(topk > 0 && expert_ids.size() % sz(topk) == 0, "{} entries are no multiple of top-{}", expert_ids.size(),
           topk);
  std::vector<Cursor> cursors = cursors_after_lower_ranks(plan, counts, source_rank);
  std::vector<std::int32_t> codes(expert_ids.size());
  std::vector<std::int64_t> last_token(sz(plan.ranks), -1);  // last token seen per destination
  for (std::size_t i = 0; i < expert_ids.size(); ++i) {
    const int expert = expert_ids[i];
    Cursor& c = cursors[sz(expert)];
    settle(plan, expert, c);
    const auto code = static_cast<std::int32_t>(c.rank * plan.row_capacity + c.row);
    --c.left;
    ++c.row;
    const auto token = static_cast<std::int64_t>(i / sz(topk));
    const bool primary = last_token[sz(c.rank)] != token;
    last_token[sz(c.rank)] = token;
    codes[i] = primary ? code : -code - 1;
  }
  return codes;
}

RowAddress decode(const MoonepPlan& plan, std::int32_t code) {
  const std::int64_t plain = code >= 0 ? code : -(std::int64_t{code} + 1);
  return {static_cast<int>(plain / plan.row_capacity), plain % plan.row_capacity, code >= 0};
}

std::vector<DuplicateGroup> duplicate_groups(const MoonepPlan& plan, std::span<const std::vector<std::int32_t>> codes,
                                             int topk, int dest_rank) {
  std::vector<DuplicateGroup> groups;
  for (const std::vector<std::int32_t>& source : codes) {
    for (std::size_t token = 0; token < source.size(); token += sz(topk)) {
      DuplicateGroup group;
      for (std::size_t i = token; i < token + sz(topk); ++i) {
        const RowAddress a = decode(plan, source[i]);
        if (a.rank != dest_rank) continue;
        if (a.primary) {
          group.primary_row = a.row;
        } else {
          group.duplicate_rows.push_back(a.row);
        }
      }
      if (!group.duplicate_rows.empty()) groups.push_back(std::move(group));
    }
  }
  return groups;
}

double mean_distinct_ranks(std::span<const std::vector<std::int32_t>> codes, int topk) {
  std::int64_t primaries = 0, entries = 0;
  for (const std::vector<std::int32_t>& source : codes) {
    for (const std::int32_t code : source) primaries += code >= 0 ? 1 : 0;
    entries += static_cast<std::int64_t>(source.size());
  }
  return entries == 0 ? 0.0 : static_cast<double>(primaries) * topk / static_cast<double>(entries);
}

}  // namespace k3sim
