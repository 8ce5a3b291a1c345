// Where tokens go: expert popularity, and keyed draws of the top-k experts of every token.
//   log-normal  p_e ~ exp(layer_sigma N(layer, e) + micro_batch_sigma N(layer, micro-batch, e))
//   correlated  one factor exp(sigma N) per owning rank, times exp(expert_sigma N) per expert
//   Dirichlet   p ~ Dir(alpha, ..., alpha), fresh per layer and micro-batch
// A token takes `topk` distinct experts one after the other, each with probability proportional to p among those not
// yet taken (Plackett-Luce, the law of Gumbel top-k). Exact draws use an alias table and skip repeats, which has
// exactly that law; draw_counts approximates the counts only (see there).
// Source: k3-facts section 3.7 (popularity), DeepSeek-V3 report section 2.1.2 (group-limited routing).
// Valid for topk <= experts. Results depend on keys only, never on threads or order.
#pragma once

#include <cstdint>
#include <vector>

#include "models/moe/expert_counts.h"

namespace k3sim {

enum class RoutingKind { kUniform, kLogNormal, kDirichlet };

struct RoutingSpec {
  RoutingKind kind = RoutingKind::kUniform;
  double layer_sigma = 0.0;           // lasting popularity of a layer's experts
  double micro_batch_sigma = 0.0;     // fresh in every micro-batch
  bool correlated_with_rank = false;  // the sigmas then act on whole owning ranks
  double expert_sigma = 0.1;          // per-expert noise of the correlated form
  double dirichlet_alpha = 1.0;
  int expert_groups = 0;  // DeepSeek-V3: groups of experts; 0 or 1: no group limit
  int topk_groups = 0;    // groups that one token may use
  std::uint64_t seed = 1;
};

struct RoutingShape {
  int ranks = 1;
  int experts = 1;
  int topk = 1;
  int tokens_per_rank = 1;
};

struct MicroBatchId {
  int layer = 0;
  int micro_batch = 0;
};

// Relative popularity per expert, summing to 1.
std::vector<double> expert_popularity(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id);

// Expert ids of one rank's tokens, tokens_per_rank * topk, token-major; exact, O(s K) unless group-limited (O(s E)).
// Requires: topk <= experts, and <= experts of the admitted groups.
std::vector<std::int32_t> draw_expert_ids(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id,
                                          int rank);

// Counts of exact draws for all ranks.
ExpertCounts draw_counts_exact(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id);

// Counts only, O(R E) independent of the number of tokens: per rank and expert a normal around s * pi_e with variance
// s * pi_e (1 - pi_e), clipped to [0, s] and corrected to sum to s * K; pi_e = 1 - exp(-p_e T) with T such that
// sum pi_e = K (the large-E limit of successive sampling). Group-limited routing: exact for few tokens, else pi_e from
// 32,768 sampled tokens.
ExpertCounts draw_counts(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id);

// pi_e: probability that a token takes expert e, in the limit above. Requires: topk < experts or all equal 1.
std::vector<double> inclusion_probability(const std::vector<double>& popularity, int topk);

}  // namespace k3sim
