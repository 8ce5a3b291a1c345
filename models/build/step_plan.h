// Everything about a step that does not depend on the clock: resolved degrees, layers of every model chunk with their
// timed programs and parameters, the pipeline schedule and the placement. step_graph.h turns it into tasks.
//
// A chunk (virtual stage) is a list of parts: embedding, decoder layers, MTP layer, output head. Equal parts share one
// TimedLayer. Layers per chunk: the scenario's list; otherwise equal when they divide; otherwise the contiguous cut that
// minimises the slowest chunk (forward + backward), ties towards earlier cuts.
// Source: engine-design section 1 (topology apart from durations); Megatron-LM pipeline layout rules.
#pragma once

#include <memory>
#include <vector>

#include "models/build/layer_set.h"
#include "models/config/scenario.h"
#include "models/schedule/registry.h"
#include "models/transformer/layers.h"

namespace k3sim {

struct ChunkPart {
  enum class Kind : std::uint8_t { embedding, layer, mtp, head } kind = Kind::layer;
  int layer = -1;                     // decoder layer index
  const TimedLayer* timed = nullptr;
  ParameterCount parameters;          // held by one rank
};

struct Chunk {
  std::vector<ChunkPart> parts;
  Bytes boundary{0};                  // activation bytes sent to the next chunk, per rank
  ParameterCount parameters() const {
    ParameterCount sum;
    for (const ChunkPart& p : parts) sum.dense += p.parameters.dense, sum.experts += p.parameters.experts;
    return sum;
  }
};

struct StepPlan {
  Scenario scenario;                  // dp resolved
  std::unique_ptr<Placement> placement;
  std::unique_ptr<CommCoster> comm;
  SplitConfig split;
  std::int64_t microbatches = 0;      // per data-parallel replica
  std::int64_t global_sequences = 0;
  std::shared_ptr<const LayerSet> layers;  // storage behind ChunkPart::timed
  std::vector<Chunk> chunks;          // in model order
  Schedule schedule;
};

// Throws ConfigError when the layout is impossible (message names the numbers).
// `layers` from make_layer_set of a scenario with the same layers, split, groups and policies saves timing them again.
StepPlan make_step_plan(const Scenario& scenario, const Machine& machine, std::shared_ptr<const LayerSet> layers = {});
std::shared_ptr<const LayerSet> make_layer_set(const Scenario& scenario, const Machine& machine);

// Exposed for tests: chunk boundaries (first layer of each chunk, then the layer count).
std::vector<int> balanced_cut(const std::vector<double>& layer_cost, int chunks, double first_extra, double last_extra);

}  // namespace k3sim
