// See context_parallel.h. Source: k3-facts 2.6, 2.7.
#include "models/transformer/context_parallel.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace k3sim {

KdaExchange kda_exchange(const SplitConfig& s) {
  if (s.kda_exchange == "all_gather") return KdaExchange::all_gather;
  if (s.kda_exchange == "prefix_scan") return KdaExchange::prefix_scan;
  if (s.kda_exchange == "all_to_all") return KdaExchange::head_all_to_all;
  if (s.cp_method == "all_to_all") return KdaExchange::head_all_to_all;
  return s.cp_method == "kcp_scan" ? KdaExchange::prefix_scan : KdaExchange::all_gather;
}

MlaExchange mla_exchange(const SplitConfig& s) {
  if (s.mla_exchange == "latent") return MlaExchange::latent;
  if (s.mla_exchange == "expanded") return MlaExchange::expanded;
  if (s.mla_exchange == "ring") return MlaExchange::ring;
  if (s.mla_exchange == "all_to_all") return MlaExchange::head_all_to_all;
  if (s.cp_method == "all_to_all") return MlaExchange::head_all_to_all;
  if (s.cp_method == "all_gather") return MlaExchange::expanded;
  return s.cp_method == "ring" ? MlaExchange::ring : MlaExchange::latent;
}

Bytes kcp_state_bytes(std::int64_t heads, std::int64_t dim) {
  return Bytes(heads * dim * 2 * dim * 4);
}

Bytes kcp_received(KdaExchange how, int ranks, std::int64_t heads, std::int64_t dim) {
  if (ranks <= 1 || how == KdaExchange::head_all_to_all) return Bytes(0);
  const int states = how == KdaExchange::all_gather ? ranks - 1 : std::bit_width(static_cast<unsigned>(ranks - 1));
  return kcp_state_bytes(heads, dim) * states;
}

std::int64_t kda_segments(std::int64_t chains) {
  constexpr std::uint64_t kChains = 64;
  const std::uint64_t fit = kChains / static_cast<std::uint64_t>(std::max<std::int64_t>(1, chains));
  return fit <= 1 ? 1 : static_cast<std::int64_t>(std::bit_floor(fit));
}

namespace {

// Pairs of the positions [from, to) of the packed sequence.
double pairs_of(const std::vector<std::int64_t>& documents, std::int64_t from, std::int64_t to) {
  double pairs = 0;
  std::int64_t begin = 0;
  for (std::int64_t length : documents) {
    const std::int64_t a = std::max(from, begin) - begin, b = std::min(to, begin + length) - begin;
    if (a < b) pairs += 0.5 * static_cast<double>(b - a) * static_cast<double>(a + b);
    begin += length;
  }
  return pairs;
}

}  // namespace

std::vector<double> causal_pairs(const std::vector<std::int64_t>& documents, int ranks, bool contiguous) {
  const std::int64_t all = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
  const std::int64_t slices = contiguous ? ranks : 2 * ranks;
  const auto edge = [&](std::int64_t i) { return all * i / slices; };
  std::vector<double> out;
  for (std::int64_t r = 0; r < ranks; ++r) {
    double pairs = pairs_of(documents, edge(r), edge(r + 1));
    if (!contiguous) pairs += pairs_of(documents, edge(slices - 1 - r), edge(slices - r));
    out.push_back(pairs);
  }
  return out;
}

std::vector<double> causal_shares(const std::vector<std::int64_t>& documents, int ranks, bool contiguous) {
  std::vector<double> out = causal_pairs(documents, ranks, contiguous);
  const double mean = std::accumulate(out.begin(), out.end(), 0.0) / static_cast<double>(ranks);
  for (double& x : out) x /= mean;
  return out;
}

std::int64_t attended_keys(const std::vector<std::int64_t>& documents, int ranks, bool contiguous) {
  const std::vector<double> pairs = causal_pairs(documents, ranks, contiguous);
  const std::int64_t all = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
  const double queries = static_cast<double>(all) / ranks;
  return static_cast<std::int64_t>(2.0 * *std::max_element(pairs.begin(), pairs.end()) / queries + 0.5);
}

double mean_document(const std::vector<std::int64_t>& documents) {
  double squares = 0, sum = 0;
  for (std::int64_t l : documents)
    squares += static_cast<double>(l) * static_cast<double>(l), sum += static_cast<double>(l);
  return sum > 0 ? squares / sum : 0.0;
}

}  // namespace k3sim
