// Rows between ranks for an assignment of expert rows to ranks, and the link traffic that follows.
//   entries[r][d]   (token, k) entries of source r computed on d
//   distinct[r][d]  tokens of r with at least one entry on d = T_r (1 - miss(E, E f, K)), f = entries / (T_r K)
// With a domain limit of L of N domains: T_r L/N (1 - miss(E L/N, E f, K)).
// Source: hardware section 3.5, k3-facts section 3.6. Valid for tokens whose experts are drawn independently; exact
// for uniform routing.
#pragma once

#include <cstdint>
#include <vector>

#include "models/moe/dispatcher.h"
#include "models/moe/moonep_planner.h"

namespace k3sim {

using Matrix = std::vector<std::vector<double>>;  // [source rank][destination rank]

Matrix zero_matrix(int ranks);
// Everything at its owner.
Matrix entries_at_home(const ExpertCounts& counts);
// Step 5 of the planner on counts: source ranks ascending fill destination ranks ascending.
Matrix entries_of_plan(const ExpertCounts& counts, const MoonepPlan& plan);

// Rows (not bytes) per rank.
struct RankTraffic {
  double nvlink_sent = 0, nvlink_received = 0;
  double rdma_sent = 0, rdma_received = 0;
  double own = 0;          // distinct tokens that stay on the rank
  double copied = 0;       // duplicate rows written plus their primaries read
  double pre_reduced = 0;  // duplicates read plus their primaries read and written
};
using Traffic = std::vector<RankTraffic>;

enum class Hops { kSingle, kTwo };

// One copy per distinct destination.
Traffic deduplicated_traffic(const DispatchWorkload& w, const Matrix& entries, Hops hops);
// One copy per entry, single hop.
Traffic plain_traffic(const DispatchWorkload& w, const Matrix& entries);

LinkBytes dispatch_link_bytes(const RankTraffic& t, double row_bytes);
// The combine moves the same rows backwards.
LinkBytes combine_link_bytes(const RankTraffic& t, double row_bytes);

// max over ranks of the slower of NVLink and RDMA, each the larger of its two directions.
Time slowest_link(const Traffic& traffic, double row_bytes, Bandwidth nvlink, Bandwidth rdma);

// Bytes and times of rows copied straight to their final place (MoonEP, copy-free): fixed cost, slowest link, then the
// expansion of duplicates behind the dispatch and their pre-reduction before the combine.
void copy_rows(const DispatchWorkload& w, const Traffic& traffic, const DispatchRates& rates, DispatchResult& out);

// Rows and padded rows of every rank from group_rows.
void count_rows(DispatchResult& result, int pad_rows);
std::vector<std::int64_t> tokens_per_source(const DispatchWorkload& w);

}  // namespace k3sim
