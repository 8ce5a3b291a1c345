// "Does it fit, and on how few nodes?" For growing node counts the layouts of the space are tried; the batch is set to
// what every layout can split, since memory depends only on the micro-batches in flight. The answer names the margin of
// every stage, the term that binds, and what each knob would free at which price.
// Source: issue "What-if" (fit question first); peers.md (d) 5.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/planner/search.h"

namespace k3sim {

struct Knob {
  const char* name;
  std::vector<std::string> overrides;  // as --set takes them
};
const std::vector<Knob>& memory_knobs();  // a new knob is one line

struct KnobEffect {
  std::string name;
  double freed_gib = 0, step_change_pct = 0;
  bool fits = false;
};

struct FitAnswer {
  std::string gpu;
  int nodes = 0;           // 0: nothing fits up to the limit
  std::int64_t index = 0;  // of the layout in the space
  std::string layout;
  Scenario scenario;
  std::vector<RankMemory> memory;  // per pipeline stage
  Bytes capacity;
  std::string binding;  // largest term on the fullest stage
  double binding_gib = 0;
  std::vector<KnobEffect> knobs;  // what frees memory on one node count less, cheapest first
};

struct FitOptions {
  int most_nodes = 1024;
  bool knobs = true;
  EvaluateOptions evaluate;
  int threads = 1;
};

// One answer for every value of the cluster.gpu axis (or the one GPU).
std::vector<FitAnswer> smallest_fit(const SearchSpace& space, MachineStore& machines, const FitOptions& options);

}  // namespace k3sim
