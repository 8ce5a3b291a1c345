// The state of an allocator before the first event of a snapshot's trace.
// Recording usually starts after the model is built, and long traces lose their oldest events: then frees refer to
// memory the trace never allocated. Undoing the trace from the final segments gives the segments and blocks it began
// with. A block that was freed within the trace is known by address and requested size; its border is taken from the
// rounding rule, and it is given the remainder up to the next neighbour when the policy would not have split that off.
#pragma once

#include <vector>

#include "sim/mem/allocator_policy.h"
#include "tools/import/memory_snapshot.h"

namespace k3sim {

// Empty when the trace starts with an empty allocator, or when trace and final segments contradict each other (the
// replay then shows where).
std::vector<MemorySegment> segments_before_trace(const MemorySnapshot& snapshot, const AllocatorPolicy& policy);

}  // namespace k3sim
