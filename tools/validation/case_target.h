// What a case measured, as one step time: step_time_s where the source gives it, otherwise derived from its rate with
// the source's own FLOP convention. Memory cases add a second target. Source: validation README; product-spec 6, 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/validation/case_file.h"

namespace k3sim {

struct StepTarget {
  double step_time_s = 0;
  std::string derived_from;  // "step_time_s", "tokens_per_s_per_gpu", "mfu_pct", ...
};
std::optional<StepTarget> step_target(const Case& c);

// What the source counted: the allocator's allocated or reserved peak, or everything on the device.
enum class MemoryMeasure : std::uint8_t { allocated, reserved, device };

struct MemoryTarget {
  double gib = 0;                            // as printed
  double unit_bytes = 1024.0 * 1024 * 1024;  // of the printed number
  MemoryMeasure measure = MemoryMeasure::allocated;
  bool reserved = false;  // measure == reserved
};
std::optional<MemoryTarget> memory_target(const Case& c);

}  // namespace k3sim
