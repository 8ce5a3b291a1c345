// Sentences for what a machine lacks.
// Source: see the header.
#include "calibrate/harness/availability.h"

#include <fmt/format.h>

namespace k3sim {

std::string skip_reason(const Needs& needs, const MachineFacts& machine) {
  std::vector<std::string> reasons;
  if (machine.gpus < needs.gpus) reasons.push_back(fmt::format("needs {} GPUs, {} in use", needs.gpus, machine.gpus));
  if (machine.compute_capability < needs.compute_capability)
    reasons.push_back(fmt::format("needs compute capability {}.{}, this GPU has {}.{}", needs.compute_capability / 10,
                                  needs.compute_capability % 10, machine.compute_capability / 10,
                                  machine.compute_capability % 10));
  if (machine.free_memory_gib < needs.memory_gib)
    reasons.push_back(
        fmt::format("needs {:.1f} GiB of GPU memory, {:.1f} free", needs.memory_gib, machine.free_memory_gib));
  if (needs.peer_access && machine.gpus >= needs.gpus && !machine.peer_access)
    reasons.push_back("needs peer access between the GPUs, which the driver refuses");
  if (needs.nccl && !machine.nccl_problem.empty()) reasons.push_back("needs NCCL: " + machine.nccl_problem);
  std::string text;
  for (const auto& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

}  // namespace k3sim
