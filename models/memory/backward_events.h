// The backward half of layer_events. Source: layer_events.h (rules).
#pragma once

#include "models/memory/event_list.h"

namespace k3sim {

// Appends the backward pass to `list`. split: operations with weights leave their kept input and output gradient for
// `weight`. Returns the tensor that leaves as the input's gradient; -1: none.
int backward_events(const LayerTensors& t, bool split, EventList& list, EventList& weight);

}  // namespace k3sim
