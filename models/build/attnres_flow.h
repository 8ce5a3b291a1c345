// Block rows of Attention Residuals between pipeline stages: how many cross every boundary and how many wait where.
//
// A row is born in the layer that closes a block (0-based layer l with l mod B = 0) and is read by every later layer.
//   naive   a boundary carries all rows of the bank: K(c) after chunk c
//   cached  a rank keeps the rows of a micro-batch until its backward, so that a boundary carries only what was born
//           since the receiving rank last worked on it: K(c) - K(last earlier chunk of that rank)
// One row per chunk and V chunks on each of P ranks in turn: P (P - 1) / 2 + P (P - 1)(V - 1) rows, which is
// P (P - 1)(2 V - 1) / 2. Backward sends the same number of row gradients the other way (rows are summed where they
// wait). Source: k3-facts 2.5; peers section 5 (payload (1 + K) S B H 2). Valid for any placement of stages on ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "models/build/step_plan.h"

namespace k3sim {

enum class AttnresPipeline : std::uint8_t { cached, naive };

struct AttnresRows {
  std::vector<std::int64_t> sent;  // by stage: rows over the boundary to the next one; 0 inside a rank and at the end
  std::vector<std::int64_t> received;  // by stage: rows of other ranks that arrive with its input and wait for backward
  std::int64_t total_sent() const;
};

// rows_after[c]: rows of the bank when chunk c has run; rank_of_stage: of one chain of stages.
AttnresRows attnres_rows(const std::vector<std::int64_t>& rows_after, const std::vector<int>& rank_of_stage,
                         AttnresPipeline mode);

// Rows of the bank after that many layers have run.
constexpr std::int64_t attnres_bank(std::int64_t layers, std::int64_t block) {
  return (layers + block - 1) / block;
}

// What the scenario's stages exchange and hold, by stage of the schedule (all chains). Without AttnRes the payload is
// the chunk's own boundary and nothing is held.
struct StageBoundaries {
  std::vector<Bytes> payload;    // activations (or gradients) between this stage and the next
  std::vector<Bytes> held_rows;  // received rows alive from the stage's forward to its backward, per micro-batch
};
StageBoundaries stage_boundaries(const StepPlan& plan);

}  // namespace k3sim
