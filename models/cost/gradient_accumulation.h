// What it costs to add a weight gradient to the gradient in memory instead of writing it as a new tensor: the epilogue
// reads and writes the buffer's type where an isolated product (the calibrated curves) writes 2 bytes per value.
//
//   t = B (2 b - 2) / W * share,   share = 0.56 + 1.05 / (1 + (x / 2.5)^2),   x = (2 m / P) / (8 / W)
//
// B values of the weight, b bytes per value of the buffer, m tokens per weight, P and W the GPU's peak rate in the
// operands' type and its memory bandwidth; x says how long a tile computes against its epilogue's traffic. Products of
// several experts run beside each other, so that 0.62 of it is seen.
// Source: 48 dense and 11 grouped products in BF16 with FP32 buffers on one H200, m = 512 to 16384, constants chosen on
// a run of them that is not committed; against the committed run (calibrate/measurements/h200_accumulate.csv) the whole
// product is met within 2.3 % in the median and 13 % at worst. Other GPUs and types: borrowed by x and W, not measured.
// Independent check: in the published DeepSeek-V3 trace the error of weight gradients falls from -35 to -25 %. Beyond
// the range of m, share keeps its limits.
#pragma once

#include "models/cost/roofline.h"
#include "models/transformer/kernel.h"

namespace k3sim {

// Microseconds; 0 for kernels that accumulate nothing.
double accumulation_us(const Kernel& kernel, const RooflinePeaks& peaks);

}  // namespace k3sim
