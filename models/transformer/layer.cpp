// Layer programs of decoder layers, and of embedding, head and MTP built from the same parts.
// boundary: bytes handed to the next layer; with AttnRes the stored rows travel too: (1 + rows in the bank) x row.
// Source: k3-facts sections 1.2 and 2.5 (reference without cache: (1 + ceil(l / 12)) x hidden per token).
#include "models/transformer/layers.h"
#include "models/transformer/parts.h"
#include "sim/base/check.h"

namespace k3sim {

LayerProgram layer_program(const ModelSpec& model, std::size_t index, const SplitConfig& split) {
  CS_CHECK(index < model.layers.size(), "layer {} of {}", index, model.layers.size());
  LayerGraph graph;
  LayerContext ctx{model, split, graph};
  const Bytes row = tensor_bytes(ctx.shard_tokens(), model.hidden);
  const Node input = graph.input(row);
  const Node output = decoder_layer(ctx, model.layers[index], index, input);
  LayerProgram program = graph.finish(output);
  if (model.attnres_block > 0) {
    const auto next = static_cast<std::int64_t>(index) + 1;
    program.boundary = row * (1 + (next + model.attnres_block - 1) / model.attnres_block);
  }
  return program;
}

}  // namespace k3sim
