// Why a configuration is not in the answer. Every rejected candidate has exactly one of these codes, the first rule
// that it broke; codes are stable words in CSV and JSON. Source: issue "What-if" (reason codes); engine-design
// section 16.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace k3sim {

enum class Reason : std::uint8_t {
  ok,            // ranked
  gpus,          // tp x pp x cp (x dp) does not make the cluster
  node,          // tensor parallelism leaves the node
  sequence,      // cp or tp does not divide the tokens
  batch,         // sequences do not split into micro-batches
  heads,         // tp does not divide heads or widths
  experts,       // ep or etp does not divide experts or their width
  expert_ranks,  // ep x etp does not divide the ranks of a stage
  layers,        // more model chunks than layers
  schedule,      // the schedule cannot have these chunks or micro-batches
  memory_bound,  // does not fit whatever the schedule does
  time_bound,    // cannot beat what has been found
  slower,        // evaluated, not among the finalists
  no_effect,     // contradicts itself or sets something without effect
  memory,        // simulated and does not fit
  unanchored,    // a cost that no measurement anchors
  failed,        // another problem, see its text
};
inline constexpr int kReasons = 17;
const char* to_string(Reason reason);
const char* explain(Reason reason);

using ReasonCounts = std::array<std::int64_t, kReasons>;
using Reasons = std::vector<Reason>;  // by index of the space
ReasonCounts count_reasons(const Reasons& reasons);

}  // namespace k3sim
