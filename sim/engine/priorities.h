// The one order of what happens at the same picosecond. Events compare by (time, priority, stable id), where the id is
// the task's or flow's id from the graph and never an insertion counter: the order survives refactoring and threads.
// Source: engine-design notes section 3; named priorities as in gem5, whose numbers also come from one file.
#pragma once

#include <cstdint>

namespace k3sim {

enum class Priority : std::uint8_t {
  // First, so that everything that ends now has ended before anybody looks: the result cannot depend on which of two
  // simultaneous completions is handled first.
  complete = 0,
  // After all completions: rates are solved once per instant, with the final set of flows.
  network_rates_change = 1,
  // After the rates: what is released sees a settled network.
  release_dependents = 2,
  // After all releases: starts happen in id order, not in the order of release.
  start = 3,
  // After the starts: a sample shows the state that holds from this instant on.
  sample = 4,
  // Last: a run that stops at t includes everything that happens at t.
  stop = 5,
};

}  // namespace k3sim
