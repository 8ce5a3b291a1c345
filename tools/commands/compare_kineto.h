// The profiler half of k3sim compare. Source: product-spec section 2; engine-design section 13.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

struct KinetoComparison {
  std::string scenario;  // empty: only what was measured
  std::vector<std::string> set;
  std::string trace, out, unit = "auto";
  int rank = 0;     // pipeline rank that the trace comes from
  int device = -1;  // GPU of a trace with several; -1: the first
};

int compare_kineto(const KinetoComparison& comparison, CommandContext& context);

}  // namespace k3sim
