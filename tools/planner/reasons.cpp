#include "tools/planner/reasons.h"

#include <cstddef>

namespace k3sim {

namespace {
struct Entry {
  const char *name, *explanation;
};
constexpr Entry kEntries[kReasons] = {
    {"ok", "is in the answer"},
    {"gpus", "tp x pp x cp x dp does not make the number of GPUs"},
    {"node", "tensor parallelism would leave the NVLink domain"},
    {"sequence", "cp or tp does not divide the tokens of a micro-batch"},
    {"batch", "the global batch does not split into micro-batches x dp"},
    {"heads", "tp does not divide attention heads or layer widths"},
    {"experts", "ep or etp does not divide the experts or their width"},
    {"expert_ranks", "ep x etp does not divide the ranks of a pipeline stage"},
    {"layers", "more model chunks than layers"},
    {"schedule", "the schedule does not exist for these chunks and micro-batches"},
    {"memory_bound", "states and least activations exceed the memory"},
    {"time_bound", "its lower bound is above what was found"},
    {"slower", "evaluated, slower than the finalists"},
    {"no_effect", "settings contradict each other or have no effect"},
    {"memory", "simulated, does not fit"},
    {"unanchored", "no measurement anchors a cost"},
    {"failed", "cannot be evaluated"},
};
}  // namespace

const char* to_string(Reason reason) {
  return kEntries[static_cast<std::size_t>(reason)].name;
}
const char* explain(Reason reason) {
  return kEntries[static_cast<std::size_t>(reason)].explanation;
}

ReasonCounts count_reasons(const Reasons& reasons) {
  ReasonCounts counts{};
  for (Reason r : reasons) ++counts[static_cast<std::size_t>(r)];
  return counts;
}

}  // namespace k3sim
