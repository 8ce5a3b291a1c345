// See own_layers.h. Source: k3-facts 2.4.
#include "models/build/own_layers.h"

#include <fmt/format.h>

#include "models/transformer/layers.h"

namespace k3sim {

OwnLayers::OwnLayers(StepPlan& plan, const Machine& machine) : plan_(plan), machine_(machine), comm_(*plan.comm) {
  comm_.set_moe(plan.layers->moe());
  if (!plan_.own_layers) plan_.own_layers = std::make_shared<std::deque<TimedLayer>>();
}

const TimedLayer* OwnLayers::make(const ChunkPart& part, const RecomputePolicy& policy) {
  std::string key = fmt::format("{} {:d}{:d}{:d}{:d}", static_cast<const void*>(part.timed), policy.full, policy.fp8,
                                policy.offload, policy.half_products);
  for (std::size_t m = 0; m < policy.modules.size(); ++m) key += policy.modules[m] ? fmt::format(" {}", m) : "";
  for (const StorageRule& r : policy.rules) key += "|" + r.match + to_string(r.treatment);
  const auto [it, fresh] = made_.try_emplace(key, nullptr);
  if (!fresh) return it->second;
  const ModelSpec& model = plan_.scenario.model;
  const LayerProgram program = part.kind == ChunkPart::Kind::mtp
                                   ? mtp_program(model, plan_.split)
                                   : layer_program(model, static_cast<std::size_t>(part.layer), plan_.split);
  plan_.own_layers->push_back(time_layer(program, policy, plan_.layers->options(), machine_, comm_));
  plan_.own_layers->back().moe = part.timed->moe;
  return it->second = &plan_.own_layers->back();
}

}  // namespace k3sim
