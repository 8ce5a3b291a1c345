// The memory half of k3sim compare. Source: product-spec section 7 (JSON keys); engine-design section 10.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct CommandContext;

// Emulated allocator against the snapshot's own trace; exit code 1 when they part.
// `folder` empty: no files.
int replay_memory(const std::string& snapshot, const std::string& folder, CommandContext& context);

struct MemoryComparison {
  std::string scenario;
  std::vector<std::string> set;
  std::string snapshot, out;
  int rank = -1;  // -1: the rank with the highest predicted peak
};
// Predicted peaks of one pipeline rank against the snapshot's.
int compare_memory(const MemoryComparison& comparison, CommandContext& context);

}  // namespace k3sim
