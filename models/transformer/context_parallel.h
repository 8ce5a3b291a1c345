// How attention layers share a sequence over context-parallel ranks: what is exchanged and who works how much.
//
// KDA carries a state from left to right, so that slices are contiguous. Each rank walks its slice once for the state
// it would reach from zero and the cumulative transition (pre-pass), exchanges both (heads x d x 2d FP32, 12.58 MB for
// K3, whatever the number of tokens), merges those of earlier ranks and runs the core from the right initial state.
//   all_gather       (P - 1) states received per layer and direction (the report's and FLA's way)
//   prefix_scan      ceil(log2 P) states, one after the other
//   head_all_to_all  rows for heads: whole sequence, heads / P
// MLA: compressed latents (kv rank + shared slice), expanded keys and values, a ring of those, or heads for rows.
// Causal work of a contiguous slice r of P over the mean: (2 r + 1) / P; zigzag slices (r and 2P - 1 - r) are even, but
// give KDA two pieces per rank and so twice the states.
// Splitting inside one GPU: the serial chain of a head is cut into segments with the same pre-pass and merge, as many
// as give 64 chains (FlashKDA PR 10 and cuLA all land there); 96 heads need none.
// Source: k3-facts 2.6, 2.7, 4.6; FLA fla/ops/cp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/transformer/program.h"

namespace k3sim {

enum class KdaExchange : std::uint8_t { all_gather, prefix_scan, head_all_to_all };
enum class MlaExchange : std::uint8_t { latent, expanded, ring, head_all_to_all };
KdaExchange kda_exchange(const SplitConfig& split);
MlaExchange mla_exchange(const SplitConfig& split);

Bytes kcp_state_bytes(std::int64_t heads, std::int64_t dim);                           // of one rank
Bytes kcp_received(KdaExchange how, int ranks, std::int64_t heads, std::int64_t dim);  // per layer and direction
std::int64_t kda_segments(std::int64_t chains);                                        // per chain, inside one GPU

// Query-key pairs of every rank for documents packed in that order, one sequence.
std::vector<double> causal_pairs(const std::vector<std::int64_t>& documents, int ranks, bool contiguous);
// The same over the mean: 1 when balanced.
std::vector<double> causal_shares(const std::vector<std::int64_t>& documents, int ranks, bool contiguous);
// Keys k for which a causal call of q queries has q k / 2 pairs, as the busiest rank has; documents as above.
std::int64_t attended_keys(const std::vector<std::int64_t>& documents, int ranks, bool contiguous);
// Mean document length a token lives in: sum of squares over the sum.
double mean_document(const std::vector<std::int64_t>& documents);

}  // namespace k3sim
