// Expected data volumes of expert parallelism: distinct destinations per token and what each operation moves.
//   distinct groups of a token   D(N) = N (1 - C(E - E/N, K) / C(E, K))          N groups of E / N experts, top-K
//   remote groups                D (N - 1) / N
//   groups with n >= 2 entries   N (1 - P0 - P1), hypergeometric: they hold the primaries that have duplicates
// With group-limited routing a token sees only `limit` of the N groups: D(limit) on E limit / N experts.
// Source: k3-facts sections 3.2, 3.6; hardware section 3.5. Valid for uniform routing (skew changes D by a few
// percent, section 3.7) and N dividing E.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace k3sim {

// C(n - m, k) / C(n, k) continued to real m: probability that none of k distinct draws of n falls among m.
double miss_probability(int n, double m, int k);
// Probability that at least two of the k draws fall among m.
double at_least_two_probability(int n, double m, int k);

double expected_distinct(int groups, int experts, int topk);
double expected_distinct_limited(int groups, int limit, int experts, int topk);
double expected_remote(int groups, int experts, int topk);
// Groups of one token that hold at least two of its entries.
double expected_shared_groups(int groups, int experts, int topk);

struct ExchangeShape {
  int experts = 896;
  int ranks = 8;
  int topk = 16;
  int domain_ranks = 8;  // ranks per NVLink domain
  std::int64_t tokens_per_rank = 8192;
  std::int64_t width = 3584;  // values per row on the wire (the latent width for K3)
  int bytes_per_value = 2;

  Bytes row_bytes() const { return Bytes(width * bytes_per_value); }
  int domains() const { return (ranks + domain_ranks - 1) / domain_ranks; }
};

struct ExchangeVolume {
  double distinct_ranks = 0;  // per token, own rank included ("U")
  double remote_ranks = 0;
  double remote_domains = 0;  // 0 within one domain
  Bytes egress;               // per rank, one copy per remote rank
  Bytes rdma_egress;          // per rank, one copy per remote domain
  Bytes logical;              // per rank without de-duplication
};
ExchangeVolume exchange_volume(const ExchangeShape& shape);

// Bytes of one MoonEP operation on one rank: network, and the local work before or after it.
struct OperationBytes {
  Bytes network;
  Bytes hbm;
};
OperationBytes dispatch_bytes(const ExchangeShape& shape);  // also the combine's backward, with the saved plan
OperationBytes combine_bytes(const ExchangeShape& shape);   // also the dispatch's backward

// Values that one token sends per direction without de-duplication: topk * width (57,344 for K2 and for K3).
std::int64_t values_per_token(int topk, std::int64_t width);

struct ExpertShape {
  std::int64_t width = 3584;
  std::int64_t intermediate = 3072;
  std::int64_t parameters() const { return 3 * width * intermediate; }
};
Bytes replica_weight_bytes(const ExpertShape& expert);    // BF16 push, per replica
Bytes replica_gradient_bytes(const ExpertShape& expert);  // FP32 return, per replica
// Process-global pools, one set for all layers: E / R replica weights and FP32 reduce slots.
Bytes replica_pool_bytes(const ExpertShape& expert, int experts_per_rank);

struct PlanBytes {
  Bytes gather;     // counts written to rank 0
  Bytes multicast;  // three [R, E] tables
  Bytes left_at_root;
  Bytes root_exchange;   // rank 0 <-> rank 1, each way
  Bytes source_records;  // per rank
};
PlanBytes plan_bytes(const ExchangeShape& shape);

}  // namespace k3sim
