// MoonEP planner: from token counts to a plan in which every rank computes the same number of rows (steps 1-4).
//   1 loads      bal[h] = load[h] - cap[h];  cap = total div R, plus 1 for the first total mod R ranks
//   2 quotas     hottest rank h fills the coldest rank u completely: z[h][u] = -bal[u]; until no rank is above its cap
//   3 experts    per donor: largest open quota takes rows of the expert with most rows left
//   4 layout     own experts, then replica slots; every non-empty group padded to a multiple of `pad_rows`
// All ties: lowest rank, lowest expert. Guarantee: at most E / R foreign experts per rank, all from one donor.
// Source: k3-facts section 3.3 (own words of the K3 report section 5.2.1 and the MoonEP code); tests: 3.4, 3.5.
// Valid for R dividing E and fewer than 2^31 rows. `tolerance` and `domain_ranks` are extensions of this simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "models/moe/expert_counts.h"

namespace k3sim {

enum class GroupLayout {
  kReplicaSlots,     // release 26/09: own experts, then E / R slots in ascending expert id
  kGlobalPositions,  // older: E global positions, then B slots for the foreign experts with most rows
};

struct PlannerOptions {
  std::int64_t capacity_rows = 0;  // S * K of the receive buffer; 0: the largest cap of this plan
  int pad_rows = 128;
  GroupLayout layout = GroupLayout::kReplicaSlots;
  int global_layout_slots = 0;  // B of the older layout
  double tolerance = 0.0;       // no rows move while the hottest rank is within (1 + tolerance) * cap
  int domain_ranks = 0;         // > 0: a donor prefers receivers of its own NVLink domain of this many ranks
};

struct Quota {
  int donor = 0;
  int receiver = 0;
  std::int64_t rows = 0;
  friend bool operator==(const Quota&, const Quota&) = default;
};

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

struct MoonepPlan {
  int experts = 0;
  int ranks = 0;
  int groups_per_rank = 0;                      // 2 E/R, or E + B in the older layout
  int slots_per_rank = 0;                       // E/R, or B
  std::int64_t row_capacity = 0;                // rows of the receive buffer including padding ("NvS")
  std::vector<std::int64_t> cap;                // [rank] rows to compute
  std::vector<Quota> quotas;                    // in the order in which step 2 made them
  std::vector<std::int32_t> alloc;              // [rank][expert] rows of the expert computed by the rank
  std::vector<std::int32_t> group_start;        // [rank][expert] first row, -1 where alloc is 0
  std::vector<std::int32_t> cu_seqlens;         // [rank][group] padded end
  std::vector<RowRange> zero_fill;              // [rank][group] padding rows
  std::vector<std::int32_t> experts_to_copy;    // [rank][slot] global expert id, -1 unused
  std::vector<std::int32_t> replicas_received;  // [rank]
  std::vector<std::int32_t> replicas_sent;      // [rank] copies this owner must push

  int experts_per_rank() const { return experts / ranks; }
  int owner(int expert) const { return expert / experts_per_rank(); }
  std::int32_t alloc_at(int rank, int expert) const { return alloc[at(rank, expert, experts)]; }
  std::int32_t start_at(int rank, int expert) const { return group_start[at(rank, expert, experts)]; }
  std::int32_t cu_seqlen_at(int rank, int group) const { return cu_seqlens[at(rank, group, groups_per_rank)]; }
  const RowRange& zero_fill_at(int rank, int group) const { return zero_fill[at(rank, group, groups_per_rank)]; }
  std::int32_t slot_at(int rank, int slot) const { return experts_to_copy[at(rank, slot, slots_per_rank)]; }

  std::int64_t rows(int rank) const;    // real rows
  std::int64_t moved_rows() const;      // rows computed away from their owner
  int foreign_experts(int rank) const;  // experts of other owners with rows here

  static std::size_t at(int row, int column, int width) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column);
  }
};

// Rows of one receive buffer: align_up(capacity_rows + (pad - 1) * 2 E/R, pad).
std::int64_t receive_buffer_rows(std::int64_t capacity_rows, int experts_per_rank, int pad_rows);

// Requires: experts a positive multiple of ranks, counts >= 0, pad_rows > 0, capacity_rows 0 or >= every cap.
MoonepPlan plan_moonep(const ExpertCounts& counts, const PlannerOptions& options = {});

}  // namespace k3sim
