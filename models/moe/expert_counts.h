// Token counts per source rank and expert: tpe[r][e] = how many of rank r's (token, k) entries chose expert e in one
// micro-batch of one layer. The common currency of routing, planner and dispatchers.
// Source: k3-facts section 3.2 (planner input "tpe"). Valid below 2^31 rows in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace k3sim {

struct ExpertCounts {
  int ranks = 0;
  int experts = 0;
  std::vector<std::int32_t> tokens;  // [rank * experts + expert]

  ExpertCounts() = default;
  ExpertCounts(int rank_count, int expert_count)
      : ranks(rank_count),
        experts(expert_count),
        tokens(static_cast<std::size_t>(rank_count) * static_cast<std::size_t>(expert_count), 0) {}

  std::size_t index(int rank, int expert) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(experts) + static_cast<std::size_t>(expert);
  }
  std::int32_t& at(int rank, int expert) { return tokens[index(rank, expert)]; }
  std::int32_t at(int rank, int expert) const { return tokens[index(rank, expert)]; }

  // Owner of an expert when every rank owns experts / ranks consecutive ones.
  int experts_per_rank() const { return experts / ranks; }
  int owner(int expert) const { return expert / experts_per_rank(); }

  std::vector<std::int64_t> per_expert() const;       // summed over source ranks
  std::vector<std::int64_t> per_source_rank() const;  // rows that each rank sends
  std::vector<std::int64_t> per_owner_rank() const;   // rows that each rank would compute without balancing
  std::int64_t total() const;
};

// (most loaded expert / mean) - 1, the imbalance measure of the balancing papers; 0 for no tokens.
double max_violation(const std::vector<std::int64_t>& per_expert);

}  // namespace k3sim
