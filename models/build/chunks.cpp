// Parts of every model chunk. Source: chunks.h; Megatron-LM pipeline layout rules.
#include "models/build/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.h"

namespace k3sim {

std::vector<int> balanced_cut(const std::vector<double>& cost, int chunks, double first_extra, double last_extra) {
  const int n = static_cast<int>(cost.size());
  std::vector<double> prefix(cost.size() + 1, 0.0);
  for (std::size_t i = 0; i < cost.size(); ++i) prefix[i + 1] = prefix[i] + cost[i];
  const auto chunk_cost = [&](int c, int from, int to) {
    return prefix[static_cast<std::size_t>(to)] - prefix[static_cast<std::size_t>(from)] + (c == 0 ? first_extra : 0) +
           (c == chunks - 1 ? last_extra : 0);
  };
  // best[c][i]: least possible maximum over chunks 0..c when they hold the first i layers.
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(static_cast<std::size_t>(chunks), std::vector<double>(cost.size() + 1, inf));
  std::vector<std::vector<int>> from(static_cast<std::size_t>(chunks), std::vector<int>(cost.size() + 1, 0));
  for (int c = 0; c < chunks; ++c)
    for (int i = 0; i <= n; ++i)
      for (int j = c == 0 ? 0 : i; j >= 0; --j) {
        const double before = c == 0 ? 0.0 : best[static_cast<std::size_t>(c - 1)][static_cast<std::size_t>(j)];
        const double value = std::max(before, chunk_cost(c, j, i));
        double& slot = best[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)];
        if (value < slot) slot = value, from[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)] = j;
        if (c == 0) break;
      }
  std::vector<int> cut(static_cast<std::size_t>(chunks) + 1, n);
  for (int c = chunks - 1; c >= 0; --c)
    cut[static_cast<std::size_t>(c)] =
        from[static_cast<std::size_t>(c)][static_cast<std::size_t>(cut[static_cast<std::size_t>(c) + 1])];
  return cut;
}

namespace {

double cost(const TimedLayer& l) {
  return (l.forward.summary.elapsed + l.backward.summary.elapsed).seconds();
}

std::vector<int> chunk_starts(const Scenario& s, const LayerSet& set, int chunks, double first_extra,
                              double last_extra) {
  const int layers = static_cast<int>(s.model.layers.size());
  const std::vector<int>& given = s.parallel.stage_layers;
  std::vector<int> start{0};
  if (!given.empty()) {
    for (int n : given) start.push_back(start.back() + n);
    if (static_cast<int>(given.size()) != chunks || start.back() != layers)
      throw ConfigError(fmt::format("{} entries that sum to {} layers; the schedule has {} chunks and the model {} "
                                    "layers",
                                    given.size(), start.back(), chunks, layers),
                        "parallel.stage_layers");
    return start;
  }
  if (layers % chunks == 0) {
    for (int c = 1; c <= chunks; ++c) start.push_back(c * (layers / chunks));
    return start;
  }
  if (layers < chunks)
    throw ConfigError(fmt::format("{} model chunks (pp x vpp) but only {} layers", chunks, layers), "parallel");
  std::vector<double> costs;
  for (std::size_t i = 0; i < s.model.layers.size(); ++i) costs.push_back(cost(*set.decoder(i, set.policy().any())));
  return balanced_cut(costs, chunks, first_extra, last_extra);
}

}  // namespace

std::vector<Chunk> cut_chunks(const Scenario& s, const LayerSet& set, int chunks) {
  const ModelSpec& m = s.model;
  const TimedLayer *embedding = set.embedding(), *head = set.head(), *mtp = set.mtp();
  const double last_extra = cost(*head) + (mtp ? cost(*mtp) * static_cast<double>(m.mtp_layers) : 0.0);
  const std::vector<int> start = chunk_starts(s, set, chunks, cost(*embedding), last_extra);
  std::vector<Chunk> out;
  for (int c = 0; c < chunks; ++c) {
    Chunk chunk;
    if (c == 0) chunk.parts.push_back({ChunkPart::Kind::embedding, -1, embedding, set.embedding_parameters()});
    const int first = start[static_cast<std::size_t>(c)], end = start[static_cast<std::size_t>(c) + 1];
    for (int i = first; i < end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const int in_chunk = i - first;
      const int limit = s.activation.recompute_layers;
      const double share = s.activation.recompute_fraction * (end - first);
      const bool recomputed = set.policy().any() && (limit == 0 || in_chunk < limit) && in_chunk < share;
      chunk.parts.push_back({ChunkPart::Kind::layer, i, set.decoder(index, recomputed), set.parameters(index)});
    }
    if (c == chunks - 1) {
      for (std::int64_t k = 0; mtp && k < m.mtp_layers; ++k)
        chunk.parts.push_back({ChunkPart::Kind::mtp, -1, mtp, set.mtp_parameters()});
      chunk.parts.push_back({ChunkPart::Kind::head, -1, head, set.head_parameters()});
    }
    chunk.boundary = chunk.parts.empty() ? Bytes(0) : chunk.parts.back().timed->boundary;
    out.push_back(std::move(chunk));
  }
  return out;
}

void split_vocabulary(std::vector<Chunk>& chunks, const LayerSet& set, const std::vector<int>& rank_of_chunk) {
  std::vector<int> seen;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    Chunk& chunk = chunks[c];
    const int rank = rank_of_chunk[c];
    const bool first = std::find(seen.begin(), seen.end(), rank) == seen.end();
    if (first) {
      seen.push_back(rank);
      chunk.split.push_back({ChunkPart::Kind::embedding, -1, set.embedding_share(), set.embedding_share_parameters()});
      chunk.split.push_back({ChunkPart::Kind::head, -1, set.head_share(), set.head_share_parameters()});
    }
    for (const ChunkPart& p : chunk.parts)
      if (p.kind == ChunkPart::Kind::layer || p.kind == ChunkPart::Kind::mtp) chunk.split.push_back(p);
  }
}

}  // namespace k3sim
