// Closed forms of the volume table; products of ratios instead of binomials, so nothing overflows.
//   C(n - m, k) / C(n, k) = prod_{i < k} (n - m - i) / (n - i)
// Source: k3-facts section 3.6 (table reproduced by the golden test). Valid for uniform routing.
#include "models/moe/volumes.h"

#include <algorithm>

namespace k3sim {
namespace {

// Probability that exactly one of k distinct draws of n falls among m.
double single_probability(int n, double m, int k) {
  if (k == 0) return 0.0;
  // k m C(n - m, k - 1) / (C(n, k) k) rewritten: k * m / (n - k + 1) * C(n - m, k - 1) / C(n, k - 1).
  return k * m / static_cast<double>(n - k + 1) * miss_probability(n, m, k - 1);
}

Bytes rows(const ExchangeShape& s, double rows_per_token) {
  return Bytes::ceil(rows_per_token * static_cast<double>(s.tokens_per_rank) * s.row_bytes().as_double());
}

Bytes weight_words(const ExchangeShape& s) {
  return Bytes(s.tokens_per_rank * s.topk * 4);
}

}  // namespace

double miss_probability(int n, double m, int k) {
  double p = 1.0;
  for (int i = 0; i < k; ++i) p *= std::max(0.0, (n - m - i) / (n - i));
  return p;
}

double at_least_two_probability(int n, double m, int k) {
  return std::max(0.0, 1.0 - miss_probability(n, m, k) - single_probability(n, m, k));
}

double expected_distinct(int groups, int experts, int topk) {
  return groups * (1.0 - miss_probability(experts, static_cast<double>(experts) / groups, topk));
}

double expected_distinct_limited(int groups, int limit, int experts, int topk) {
  if (limit <= 0 || limit >= groups) return expected_distinct(groups, experts, topk);
  return expected_distinct(limit, experts / groups * limit, topk);
}

double expected_remote(int groups, int experts, int topk) {
  return expected_distinct(groups, experts, topk) * (groups - 1) / groups;
}

double expected_shared_groups(int groups, int experts, int topk) {
  return groups * at_least_two_probability(experts, static_cast<double>(experts) / groups, topk);
}

ExchangeVolume exchange_volume(const ExchangeShape& s) {
  ExchangeVolume v;
  v.distinct_ranks = expected_distinct(s.ranks, s.experts, s.topk);
  v.remote_ranks = expected_remote(s.ranks, s.experts, s.topk);
  v.remote_domains = s.domains() > 1 ? expected_remote(s.domains(), s.experts, s.topk) : 0.0;
  v.egress = rows(s, v.remote_ranks);
  v.rdma_egress = rows(s, v.remote_domains);
  v.logical = s.row_bytes() * s.tokens_per_rank * s.topk;
  return v;
}

OperationBytes dispatch_bytes(const ExchangeShape& s) {
  const ExchangeVolume v = exchange_volume(s);
  const double duplicates = s.topk - v.distinct_ranks;
  return {v.egress + weight_words(s), rows(s, expected_shared_groups(s.ranks, s.experts, s.topk) + duplicates)};
}

OperationBytes combine_bytes(const ExchangeShape& s) {
  const ExchangeVolume v = exchange_volume(s);
  const double duplicates = s.topk - v.distinct_ranks;
  return {v.egress + weight_words(s), rows(s, 2.0 * expected_shared_groups(s.ranks, s.experts, s.topk) + duplicates)};
}

std::int64_t values_per_token(int topk, std::int64_t width) {
  return topk * width;
}

Bytes replica_weight_bytes(const ExpertShape& expert) {
  return Bytes(2 * expert.parameters());
}

Bytes replica_gradient_bytes(const ExpertShape& expert) {
  return Bytes(4 * expert.parameters());
}

Bytes replica_pool_bytes(const ExpertShape& expert, int experts_per_rank) {
  return (replica_weight_bytes(expert) + replica_gradient_bytes(expert)) * experts_per_rank;
}

PlanBytes plan_bytes(const ExchangeShape& s) {
  const std::int64_t table = std::int64_t{s.experts} * s.ranks * 4;
  const Bytes entries(s.tokens_per_rank * s.topk * 4);
  return {Bytes(table), Bytes(3 * table), Bytes(4 * (7 * std::int64_t{s.experts} + 2 * std::int64_t{s.ranks})), entries,
          entries};
}

}  // namespace k3sim
