// SiTU-GLU on the device, shared by the elementwise family and the LatentMoE path.
//   gu is [rows, 2 * width]: gate in the first half of a row, up in the second. width is a multiple of 8.
// Source: k3-facts.md section 1.2.
#pragma once

#include "calibrate/kernels/vec.cuh"

namespace k3sim {

void situ_glu_forward(const bf16* gu, bf16* out, int rows, int width, cudaStream_t stream);
void situ_glu_backward(const bf16* gu, const bf16* dout, bf16* dgu, int rows, int width, cudaStream_t stream);

}  // namespace k3sim
