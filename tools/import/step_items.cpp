// Source: step_items.h.
#include "tools/import/step_items.h"

namespace k3sim {

std::vector<const TimedItem*> items_by_label(const StepGraph& graph) {
  const std::vector<TaskLabel>& labels = graph.labels;
  std::vector<const TimedItem*> items(labels.size(), nullptr);
  const auto same = [](const TaskLabel& a, const TaskLabel& b) {
    return a.pass == b.pass && a.chunk == b.chunk && a.part == b.part;
  };
  for (std::size_t i = 0, first = 0; i < labels.size(); ++i) {
    if (i == 0 || !same(labels[i], labels[i - 1])) first = i;
    const TimedPass* pass = labels[i].pass;
    if (pass && i - first < pass->items.size()) items[i] = &pass->items[i - first];
  }
  return items;
}

}  // namespace k3sim
