// What a case measured, as one step time: step_time_s where the source gives it, otherwise derived from its rate with
// the source's own FLOP convention. Memory cases add a second target. Source: validation README; product-spec 6, 7.
#pragma once

#include <optional>
#include <string>

#include "tools/validation/case_file.h"

namespace k3sim {

struct StepTarget {
  double step_time_s = 0;
  std::string derived_from;  // "step_time_s", "tokens_per_s_per_gpu", "mfu_pct", ...
};
std::optional<StepTarget> step_target(const Case& c);

struct MemoryTarget {
  double gib = 0;
  bool reserved = false;  // the source gives the allocator's reserved bytes
};
std::optional<MemoryTarget> memory_target(const Case& c);

}  // namespace k3sim
