// validate --kind step: whole training steps measured on two H200 joined by NVLink (h200_two_gpu_steps.csv), composed
// from kernels, collectives, schedule and host launches alone; time of the slower rank and peak memory per rank.
//   stage_alone     F + B of the stage
//   pp2_1f1b        rank 0: F(i+1), then {send a(i+1), receive g(i)} together, then B(i); rank 1: F(i), B(i), exchange
//   dp2_ddp         F, then B with gradients all-reduced in buckets as they appear
//   fsdp2           parameters gathered per block before F and before B, gradients reduce-scattered after B
//   ep2_latent_moe  latent down, all-to-all, experts, all-to-all back, latent up; backward likewise
// Source: measurements README (two-GPU steps); product-spec 7.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

// Throws ConfigError for a file that is not of this form.
std::vector<ValidationRow> validate_steps(const std::string& csv_path);

}  // namespace k3sim
