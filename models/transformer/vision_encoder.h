// Kernels, parameters and bytes of a MoonViT-type encoder on one rank.
//
// Patches of all images on the rank go through the matrix products together; every image attends to itself only. An
// image that is shared by n ranks brings patches / n rows and sees all its keys and values, which are gathered per
// layer (dynamic context parallelism). Weights per layer: q, k, v (hidden x 3 width), output (width x hidden), two FFN
// matrices; the projector merges 2 x 2 patches and maps them to the language model's width.
// K3: 401.2 M parameters without projector, 0.80 GFLOP per patch forward without attention scores.
// Source: k3-facts 1.2 (MoonViT-V2), 2.8.
#pragma once

#include <cstdint>
#include <vector>

#include "models/config/model_spec.h"
#include "models/transformer/kernel.h"

namespace k3sim {

struct ImagePart {
  std::int64_t patches = 0;  // of the whole image
  int ranks = 1;             // that share it
};

constexpr std::int64_t kPatchesPerToken = 4;  // 2 x 2 merge

std::int64_t vision_parameters(const ModelSpec& model, bool with_projector = true);

// Kernels of one layer, of everything before and behind the layers, forward or backward (input and weight gradients).
std::vector<Kernel> vision_layer_kernels(const VisionSpec& vision, const std::vector<ImagePart>& images, Pass pass);
std::vector<Kernel> vision_edge_kernels(const ModelSpec& model, const std::vector<ImagePart>& images, Pass pass);

// Rows of the rank: its share of every image.
std::int64_t vision_rows(const std::vector<ImagePart>& images);
// Keys and values of one image and layer that its ranks gather.
Bytes vision_gather_bytes(const VisionSpec& vision, std::int64_t patches);
// Kept per row when the whole encoder is rebuilt at once before its backward.
Bytes vision_activation_bytes(const VisionSpec& vision);

}  // namespace k3sim
