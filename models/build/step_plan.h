// Everything about a step that does not depend on the clock: resolved degrees, layers of every model chunk with their
// timed programs and parameters, the pipeline schedule and the placement. step_graph.h turns it into tasks.
// Source: engine-design section 1 (topology apart from durations); Megatron-LM pipeline layout rules.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "models/build/chunks.h"
#include "models/build/policy_search.h"
#include "models/build/vision_plan.h"
#include "models/config/scenario.h"
#include "models/schedule/registry.h"
#include "models/transformer/layers.h"

namespace k3sim {

struct StepPlan {
  Scenario scenario;  // dp resolved
  std::unique_ptr<Placement> placement;
  std::unique_ptr<CommCoster> comm;
  SplitConfig split;
  std::int64_t microbatches = 0;  // per data-parallel replica
  std::int64_t global_sequences = 0;
  std::shared_ptr<const LayerSet> layers;              // storage behind ChunkPart::timed
  std::vector<Chunk> chunks;                           // in model order
  std::shared_ptr<std::deque<TimedLayer>> own_layers;  // policy auto: layers of single ranks
  std::vector<PolicyChoice> choices;                   // policy auto: by pipeline rank
  Schedule schedule;                                   // with the vision encoder's actions, if any
  VisionPlan vision;
};

// Gradients of one model chunk at a time fill one of two chunk-sized buffers and are reduced into their shards when the
// schedule moves on to another chunk: pipeline ZeRO-2 with CPU shards (k3-facts 2.3), and ZeRO-2 with several chunks
// per rank, whose backward passes come in runs (arXiv:2407.21783 section 3.3.2: gradients sharded, no second
// reduction).
inline bool reduces_by_chunk(const StepPlan& plan) {
  const OptimizerConfig& o = plan.scenario.optimizer;
  return o.gradient_shards == "cpu" || (o.zero == 2 && plan.scenario.parallel.vpp > 1);
}

// Pieces of another plan that a search makes once; each must come from a scenario that agrees in what it depends on.
struct StepReuse {
  std::shared_ptr<const LayerSet> layers = {};            // model, split, groups and policies
  std::shared_ptr<const std::vector<Chunk>> chunks = {};  // also pp x vpp and recompute shares; points into `layers`
  std::shared_ptr<const Schedule> schedule = {};          // schedule, pp, vpp, micro-batches, overlap_ep
  MoeEffectsCache* moe = nullptr;                         // any scenario: remembers effects by their inputs
  // Policy auto: what a search chose for the ranks of a plan with the same layers and ranks, taken instead of searching
  // again. Whoever compares steps fixes it: a search has its own steps.
  std::shared_ptr<const std::vector<PolicyChoice>> choices = {};
};
// Throws ConfigError when the layout is impossible (message names the numbers).
StepPlan make_step_plan(const Scenario& scenario, const Machine& machine, const StepReuse& reuse = {});
// `times`: of every stage, for the automatic schedule (all alike without them).
Schedule make_plan_schedule(const Scenario& scenario, std::int64_t microbatches,
                            const std::vector<StageTimes>& times = {});
std::shared_ptr<const LayerSet> make_layer_set(const Scenario& scenario, const Machine& machine,
                                               MoeEffectsCache* moe = nullptr);

}  // namespace k3sim
