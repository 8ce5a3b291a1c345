// Which parts of the model every chunk (virtual stage) holds: embedding, decoder layers, MTP layer, output head. Equal
// parts share one TimedLayer. Layers per chunk: the scenario's list; otherwise equal when they divide; otherwise the
// contiguous cut that minimises the slowest chunk (forward + backward), ties towards earlier cuts.
// Source: Megatron-LM pipeline layout rules.
#pragma once

#include <cstdint>
#include <vector>

#include "models/build/layer_set.h"

namespace k3sim {

struct ChunkPart {
  enum class Kind : std::uint8_t { embedding, layer, mtp, head } kind = Kind::layer;
  int layer = -1;  // decoder layer index
  const TimedLayer* timed = nullptr;
  ParameterCount parameters;  // held by one rank
};

struct Chunk {
  std::vector<ChunkPart> parts;
  // parallel.vocabulary_stages: what the chunk's rank runs instead of `parts`: no embedding and no output head, but a
  // share of both on the rank's first chunk (arXiv:2411.05288). Empty: `parts`.
  std::vector<ChunkPart> split;
  Bytes boundary{0};  // activation bytes sent to the next chunk, per rank
  const std::vector<ChunkPart>& steps() const { return split.empty() ? parts : split; }
  // Parameters that the rank keeps, reduces and updates.
  ParameterCount owned() const {
    ParameterCount sum;
    for (const ChunkPart& p : steps()) sum.dense += p.parameters.dense, sum.experts += p.parameters.experts;
    return sum;
  }
  ParameterCount parameters() const {
    ParameterCount sum;
    for (const ChunkPart& p : parts) sum.dense += p.parameters.dense, sum.experts += p.parameters.experts;
    return sum;
  }
};

// Throws ConfigError when the layers cannot be cut that way. Parts point into `layers`.
std::vector<Chunk> cut_chunks(const Scenario& scenario, const LayerSet& layers, int chunks);
// Fills Chunk::split: every rank's first chunk runs a share of the vocabulary layers. `rank_of_chunk` by chunk.
void split_vocabulary(std::vector<Chunk>& chunks, const LayerSet& layers, const std::vector<int>& rank_of_chunk);

// Exposed for tests: chunk boundaries (first layer of each chunk, then the layer count).
std::vector<int> balanced_cut(const std::vector<double>& layer_cost, int chunks, double first_extra, double last_extra);

}  // namespace k3sim
