// Images of every micro-batch, how a group of ranks shares them, and what the encoder then costs.
//
// Images per sequence and patches per image are drawn (Poisson, log-normal with a largest size) with keyed draws. The
// ranks of a group (neighbours of one stage: context-parallel ranks first, then data-parallel ones) pool the images of
// their sequences. Dynamic context parallelism: an image takes the smallest sub-group of 1, 2, 4 ... ranks with which
// it is no longer than the target, sub-groups are aligned blocks, the largest image goes first and to the block that is
// free earliest (LPT); of all targets the one with the least makespan is taken. Ranks that share experts wait for each
// other, so that the slowest of the pools coupled by expert parallelism counts.
//   forward(m)  = makespan of the pool            backward(m) = rebuild + backward of the same assignment
// Source: k3-facts 2.8 (patches split with gathered K/V, sub-groups, balanced images; K2.5: outputs only, then
// rebuild).
#pragma once

#include <functional>
#include <vector>

#include "models/build/machine.h"
#include "models/build/step_plan.h"
#include "models/build/vision_plan.h"
#include "models/transformer/vision_encoder.h"

namespace k3sim {

VisionPlan make_vision_plan(const StepPlan& plan, const Machine& machine);

// Ranks and their images for one pool; `cost(image)` is the time of an image part on its ranks.
struct ImageAssignment {
  std::vector<std::vector<ImagePart>> ranks;
  double makespan = 0, mean = 0;
};
using ImageCost = std::function<double(const ImagePart&)>;
ImageAssignment assign_images(std::vector<std::int64_t> patches, int ranks, int largest_group, const ImageCost& cost);
// Patches of the images of one sequence.
std::vector<std::int64_t> draw_images(const VisionConfig& config, std::int64_t sequence);

}  // namespace k3sim
