// Activation policy `auto`: every pipeline rank gets the treatments that fit its own memory at the least added time.
// The search works on sums (policy_search.h); the memory walk then checks every rank, and a rank that is still short
// gets a tighter limit (policy_chooser.cpp), at last against the emulated allocator. What comes out is compared with
// every preset by the verdict of a whole prediction (fits, then step time), so that none is better.
// Source: k3-facts 2.4; requirement: every stage is its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/build/policy_search.h"
#include "models/build/step_plan.h"

namespace k3sim {

std::vector<NamedPreset> activation_presets(const ModelSpec& model);

// Forwards of every stage of the rank that wait for their backward when most wait in all.
std::map<int, int> in_flight(const StepPlan& plan, int rank);

// Layers of a rank that a policy treats, by the timed layer they share, in model order of the first of each.
struct RankLayer {
  ChunkPart part;  // stands for all
  int count = 0;
  double alive = 0;  // micro-batches, summed over the layers
};
std::vector<RankLayer> rank_layers(const std::vector<Chunk>& chunks, const StepPlan& plan, int rank);
inline bool has_policy(const ChunkPart& p) {
  return p.kind == ChunkPart::Kind::layer || p.kind == ChunkPart::Kind::mtp;
}

// What one rank's search sees. Requires: chunks cut without a policy. remote_limit is left to the caller.
PolicyProblem policy_problem(const StepPlan& plan, const Machine& machine, int rank);
// Host memory of the node for each of its GPUs; 0: not stated.
Bytes host_share(const StepPlan& plan, const Machine& machine);

// Replaces the layers of every rank by those of its choice; plan.choices tells what was chosen. `scenario`: as it was
// before a balanced partition, for the presets' own plans. `fixed` is taken without a search when it is of these
// layers.
void choose_stage_policies(StepPlan& plan, const Machine& machine, const Scenario& scenario,
                           const std::vector<PolicyChoice>* fixed = nullptr);

}  // namespace k3sim
