// Which layer item a task of a step graph is. Source: models/build/step_graph.h (labels of one pass follow each other).
#pragma once

#include <vector>

#include "models/build/step_graph.h"

namespace k3sim {

// By TaskGraph::tag; null for tasks outside layers and for whole passes.
std::vector<const TimedItem*> items_by_label(const StepGraph& graph);

}  // namespace k3sim
