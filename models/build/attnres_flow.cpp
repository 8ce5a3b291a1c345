// Row counts over the real layer map. Source: attnres_flow.h.
#include "models/build/attnres_flow.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace k3sim {

std::int64_t AttnresRows::total_sent() const {
  return std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
}

AttnresRows attnres_rows(const std::vector<std::int64_t>& rows_after, const std::vector<int>& rank_of_stage,
                         AttnresPipeline mode) {
  const std::size_t stages = rows_after.size();
  AttnresRows out;
  out.sent.assign(stages, 0);
  out.received.assign(stages, 0);
  std::map<int, std::int64_t> known;  // rows that a rank has seen of the micro-batch
  for (std::size_t c = 0; c < stages; ++c) {
    const int rank = rank_of_stage[c];
    if (c > 0 && rank_of_stage[c - 1] != rank) {
      const std::int64_t seen = mode == AttnresPipeline::cached ? known[rank] : 0;
      out.sent[c - 1] = out.received[c] = std::max<std::int64_t>(0, rows_after[c - 1] - seen);
    }
    known[rank] = rows_after[c];
  }
  return out;
}

StageBoundaries stage_boundaries(const StepPlan& plan) {
  const Schedule& s = plan.schedule;
  const std::int64_t block = plan.scenario.model.attnres_block;
  const auto stages = static_cast<std::size_t>(s.stages), chain = static_cast<std::size_t>(s.stages_per_chain());
  StageBoundaries out;
  out.held_rows.assign(stages, Bytes());
  for (std::size_t stage = 0; stage < stages; ++stage)
    out.payload.push_back(plan.chunks[static_cast<std::size_t>(s.model_stage(static_cast<int>(stage)))].boundary);
  if (block == 0) return out;
  std::vector<std::int64_t> rows_after;
  std::int64_t layers = 0;
  for (const Chunk& c : plan.chunks) {
    layers += std::count_if(c.parts.begin(), c.parts.end(),
                            [](const ChunkPart& p) { return p.kind == ChunkPart::Kind::layer; });
    rows_after.push_back(attnres_bank(layers, block));
  }
  const auto mode = plan.scenario.attnres.pipeline == "naive" ? AttnresPipeline::naive : AttnresPipeline::cached;
  const std::int64_t tokens = plan.split.sequence_parallel ? plan.split.tokens / plan.split.tp : plan.split.tokens;
  const Bytes row(tokens * plan.scenario.model.hidden * 2);
  for (std::size_t first = 0; first < stages; first += chain) {
    const auto begin = s.rank_of_stage.begin() + static_cast<std::ptrdiff_t>(first);
    const AttnresRows rows =
        attnres_rows(rows_after, std::vector<int>(begin, begin + static_cast<std::ptrdiff_t>(chain)), mode);
    for (std::size_t c = 0; c < chain; ++c) {
      out.payload[first + c] = row * (1 + rows.sent[c]);
      out.held_rows[first + c] = row * rows.received[c];
    }
  }
  return out;
}

}  // namespace k3sim
