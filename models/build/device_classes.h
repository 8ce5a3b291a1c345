// What a task occupies on its GPU besides its stream, and how much such tasks slow each other down: the measured matrix
// of the GPU profile (compute kind x communication kind). Communication kernels take SMs and HBM bandwidth from
// compute; their own rate beside compute is a constant of the software stack (communication efficiency). Where expert
// exchange has SMs set aside (overlapped pairs), those are already missing from every kernel, so that only what exceeds
// their share slows down. Sends of pipeline stages take two SMs and count as nothing. Source: engine-design section 4;
// hardware notes 3.6; hardware_profiles/gpu `slowdown` (measured on H200).
#pragma once

#include "models/build/layer_timing.h"
#include "sim/engine/slowdown.h"

namespace k3sim {

inline constexpr ResourceClass kMatrixKernels = 1;
inline constexpr ResourceClass kMemoryKernels = 2;
inline constexpr ResourceClass kCollectives = 3;
inline constexpr ResourceClass kExchanges = 4;
inline constexpr ResourceClass kHostCopies = 5;

ResourceClass device_class(KernelFamily family);
ResourceClass device_class(const Traffic& traffic);
// set_aside: by how much kernels were slowed already for SMs that expert exchange keeps (1: not at all).
SlowdownMatrix device_slowdown(const OverlapSlowdown& measured, double set_aside);

}  // namespace k3sim
